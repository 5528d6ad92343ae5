"""When measurements justify more quota. Pure: rules and the triage of the inbox use the same check."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from portal.core.errors import Refusal
from tenants.grants.promises import Promise, in_force
from tenants.requests import policy

DECREASE, STARTER, BUNDLE, INCREASE = "decrease", "starter", "bundle", "increase"
# The default state of a rule; migrations create its row with it.
RULE_DEFAULTS = {DECREASE: True, STARTER: True, BUNDLE: True, INCREASE: False}
DAYS_MAX = policy.PERIOD_MAX.days
GROWTH_PERCENT_MAX = 1000


@dataclass(frozen=True)
class IncreaseBounds:
    """Within these bounds measured usage justifies a new total.

    `growth_percent_max`: of the running total, rounded down, at least one unit. `units_max`: of the new total.
    `days_max`: of the period. Over the last 30 days: `peak_percent_min` and `mean_percent_min` of the team's units were
    in use, `waited_percent_min` of its runs waited over a minute, `seen_percent_min` of the time was measured.
    `activity_percent_min`: mean activity of the GPUs that it held, of which as much was measured; 0: no minimum.
    """

    growth_percent_max: int = 50
    units_max: int = 8
    days_max: int = 92
    peak_percent_min: int = 90
    mean_percent_min: int = 50
    waited_percent_min: int = 10
    seen_percent_min: int = 80
    activity_percent_min: int = 0


# Smallest and largest value of each bound, and its name in the message when it is out of range.
BOUND_RANGES: Mapping[str, tuple[int, int, str]] = {
    "growth_percent_max": (1, GROWTH_PERCENT_MAX, "The maximum growth in percent"),
    "units_max": (1, policy.UNITS_MAX, "The maximum total in units"),
    "days_max": (1, DAYS_MAX, "The maximum period in days"),
    "peak_percent_min": (1, 100, "The minimum peak usage in percent"),
    "mean_percent_min": (0, 100, "The minimum average usage in percent"),
    "waited_percent_min": (0, 100, "The minimum share of waiting runs in percent"),
    "seen_percent_min": (1, 100, "The minimum share of measured time in percent"),
    "activity_percent_min": (0, 100, "The minimum mean activity of held GPUs in percent"),
}


@dataclass(frozen=True)
class IncreaseFacts:
    """A requested new total, with the measured usage of the class by the team. None: unknown.

    `held`: units in force now, including increases; `base`: those of the running total alone. `asked`: the new total,
    for `days`. `peak` and `mean`: units in use within 30 days. `seen_share`: measured share of these 30 days, 0 to 1.
    `waited_share`: share of the runs that waited over a minute, 0 to 1; None without a run. `activity`: mean activity
    of the units held in these 30 days, 0 to 1; `activity_seen_share`: the measured share of them.
    """

    class_name: str
    held: int
    base: int
    asked: int
    days: float
    peak: float | None
    mean: float | None
    seen_share: float | None
    waited_share: float | None
    activity: float | None = None
    activity_seen_share: float | None = None


def increase_refusal(facts: IncreaseFacts, bounds: IncreaseBounds) -> Refusal | None:
    """Returns why measured usage does not justify it, with numbers, in one sentence; None if it does. Unknown never
    does.
    """
    text = _beyond(facts, bounds) or _unused(facts, bounds) or _unseen(facts, bounds) or _inactive(facts, bounds)
    return Refusal("not_justified", text, status=409) if text else None


def increase_justification(facts: IncreaseFacts) -> str:
    """Returns the reason for an increase that is not refused."""
    waited = "" if facts.waited_share is None else f", {_percent(facts.waited_share)} % of the runs waited"
    active = ""
    if facts.activity is not None:
        seen = _percent(facts.activity_seen_share or 0)
        active = f"; mean activity of its GPUs was {_percent(facts.activity)} %, measured for {seen} % of what it held"
    return (
        f"Of {facts.held} units, peak usage in the last 30 days was {_number(facts.peak)} and average usage "
        f"{_number(facts.mean)}{waited}{active}."
    )


def bounds_refusals(values: Mapping[str, Any]) -> dict[str, Refusal]:
    """Returns the refusals of invalid bounds, by field. Missing fields are refused too."""
    found = {}
    for field, (least, most, words) in BOUND_RANGES.items():
        value = values.get(field)
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            said = "nothing" if value is None else str(value)[:20]
            text = f"{words} must be a whole number from {least:,} to {most:,}, not {said}."
            found[field] = Refusal("bad_bounds", text, field)
    return found


def _beyond(facts: IncreaseFacts, bounds: IncreaseBounds) -> str:
    name = facts.class_name
    if facts.base == 0:
        return f"The team has no current total of {name}, so no usage can justify an increase."
    most = max(facts.base + 1, facts.base * (100 + bounds.growth_percent_max) // 100)
    if facts.asked > most:
        return (
            f"{facts.asked} of {name} instead of {facts.base} is an increase of more than "
            f"{bounds.growth_percent_max} %. Up to {most} is within the limit."
        )
    if facts.asked > bounds.units_max:
        return f"A total of {facts.asked} of {name} exceeds the limit of {bounds.units_max}."
    if facts.days > bounds.days_max:
        return f"{facts.days:.0f} days of {name} exceed the limit of {bounds.days_max} days."
    return ""


def _unused(facts: IncreaseFacts, bounds: IncreaseBounds) -> str:
    name, held = facts.class_name, facts.held
    if facts.peak is None or facts.mean is None:
        return f"The team's usage of {name} is unknown: it was not measured in the last 30 days."
    if _is_below(facts.peak, bounds.peak_percent_min, held):
        return (
            f"Peak usage of {name} in the last 30 days was {_number(facts.peak)} of {held}, less than "
            f"{bounds.peak_percent_min} %."
        )
    if _is_below(facts.mean, bounds.mean_percent_min, held):
        return (
            f"Average usage of {name} in the last 30 days was {_number(facts.mean)} of {held}, less than "
            f"{bounds.mean_percent_min} %."
        )
    return ""


def _unseen(facts: IncreaseFacts, bounds: IncreaseBounds) -> str:
    name = facts.class_name
    if facts.seen_share is None or _is_below(facts.seen_share, bounds.seen_percent_min):
        seen = "an unknown part" if facts.seen_share is None else f"{_percent(facts.seen_share)} %"
        return (
            f"The usage of {name} was measured during {seen} of the last 30 days, less than "
            f"{bounds.seen_percent_min} %."
        )
    if not bounds.waited_percent_min:
        return ""
    if facts.waited_share is None:
        return f"The team started no runs on {name} in the last 30 days, so none waited."
    if _is_below(facts.waited_share, bounds.waited_percent_min):
        return (
            f"{_percent(facts.waited_share)} % of the runs on {name} waited over a minute in the last 30 days, "
            f"less than {bounds.waited_percent_min} %."
        )
    return ""


def _inactive(facts: IncreaseFacts, bounds: IncreaseBounds) -> str:
    """Of what was not measured, nothing is known: the mean of a small part is not that of the whole."""
    if not bounds.activity_percent_min:
        return ""
    name = facts.class_name
    if facts.activity is None or facts.activity_seen_share is None:
        return f"What the GPUs of {name} did that the team held is unknown: it was not measured in the last 30 days."
    if _is_below(facts.activity_seen_share, bounds.seen_percent_min):
        return (
            f"The activity of {name} was measured for {_percent(facts.activity_seen_share)} % of what the team held in "
            f"the last 30 days, less than {bounds.seen_percent_min} %."
        )
    if _is_below(facts.activity, bounds.activity_percent_min):
        return (
            f"Mean activity of the held GPUs of {name} in the last 30 days was {_percent(facts.activity)} %, less than "
            f"{bounds.activity_percent_min} %."
        )
    return ""


def _is_below(part: float, percent: int, whole: int = 1) -> bool:
    """Rounds, because in floating point 100 × 0.29 is less than 29."""
    return round(100 * part, 6) < percent * whole


def _percent(share: float) -> str:
    """Rounds down, so that a value below a threshold is never shown as reaching it."""
    return _number(int(round(share * 1000, 6)) / 10)


def _number(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.2f}".rstrip("0").rstrip(".")


def is_nowhere_more(before: Sequence[Promise], after: Sequence[Promise]) -> bool:
    """True if at no instant more is allocated after than before."""
    edges = {edge for promise in (*before, *after) for edge in (promise.start, promise.end)}
    return all(in_force(after, at) <= in_force(before, at) for at in edges)
