"""What a team will have used of its budget at the end of the month. Pure."""

from __future__ import annotations

from datetime import timedelta
from decimal import ROUND_HALF_UP, Decimal

from portal.ui.text import plural
from workloads.models import TeamBudget

# The days whose mean goes on until the end of the month, and how much has to be known.
RECENT = timedelta(days=7)
LEAST = timedelta(days=1)
CENT = Decimal("0.01")


def forecast(budget: TeamBudget) -> Decimal | None:
    """None: unknown, because less than a day was measured."""
    mean = _mean_per_second(budget)
    if mean is None or budget.measured_at is None or budget.month_until is None:
        return None
    rest = max(timedelta(0), budget.month_until - budget.measured_at)
    return (budget.cost + mean * Decimal(rest.total_seconds())).quantize(CENT, ROUND_HALF_UP)


def forecast_basis(budget: TeamBudget) -> str:
    """A sentence. The forecast assumes that the team goes on as in the days that it names."""
    mean = _mean_per_second(budget)
    if mean is None or budget.measured_at is None or budget.recent_since is None:
        return "Unknown: the team is less than a day old, or was not measured yet."
    days = (budget.measured_at - budget.recent_since) // timedelta(days=1)
    per_day = (mean * 86_400).quantize(CENT, ROUND_HALF_UP)
    return f"Cost until now, and for the rest of the month {per_day} a day, the mean of the last {plural(days, 'day')}."


def _mean_per_second(budget: TeamBudget) -> Decimal | None:
    if budget.measured_at is None or budget.recent_since is None:
        return None
    known = budget.measured_at - budget.recent_since
    return budget.recent_cost / Decimal(known.total_seconds()) if known >= LEAST else None
