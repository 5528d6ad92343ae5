"""The time limit of a run, when users are warned of it, and how much an extension may add. Pure.

The time limit counts from the start of the container: time in the queue does not count.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from catalog.classes.validation.run_limits import RUN_HOURS_MOST
from portal.core.errors import Refusal
from portal.ui.text import date_and_time, duration_text
from workloads.core.policy import RunFacts
from workloads.launch.options import MINUTES_PER_HOUR

FIRST_LEAD, LAST_LEAD = timedelta(minutes=30), timedelta(minutes=5)


@dataclass(frozen=True)
class TimeFacts:
    """`total_minutes`: from the start, with extensions; None: no time limit. `ends_at` None: the run has not started.
    `limit_hours`: the current limit of its class; None: no limit.
    """

    class_name: str
    total_minutes: int | None
    ends_at: datetime | None
    limit_hours: int | None


def warning_leads(total_minutes: int) -> tuple[timedelta, timedelta]:
    """Returns how long before the end users are warned, longest first: 30 and 5 minutes, less for a short run."""
    first = min(FIRST_LEAD, timedelta(minutes=total_minutes) / 10)
    return first, min(LAST_LEAD, first / 2)


def due_warning(total_minutes: int, ends_at: datetime, at: datetime) -> timedelta | None:
    """Returns the latest warning that is due; None before the first and after the end."""
    if at >= ends_at:
        return None
    return min((lead for lead in warning_leads(total_minutes) if ends_at - lead <= at), default=None)


def next_moment(total_minutes: int, ends_at: datetime, at: datetime) -> datetime:
    """Returns when the next warning or the stop is due."""
    moments = [ends_at - lead for lead in warning_leads(total_minutes)]
    return min((moment for moment in moments if moment > at), default=ends_at)


def time_over_message(total_minutes: int, added_minutes: int, ends_at: datetime) -> str:
    """Returns the message of a run that was stopped by its time limit."""
    started = ends_at - timedelta(minutes=total_minutes)
    added = f" (including {duration_text(added_minutes)} added)" if added_minutes else ""
    return (
        f"It reached its time limit of {duration_text(total_minutes)}{added} at {date_and_time(ends_at)}. "
        f"It started at {date_and_time(started)}."
    )


def most_hours(facts: TimeFacts) -> int:
    """Returns how many hours an extension may add now."""
    if facts.total_minutes is None or facts.ends_at is None:
        return 0
    limit = RUN_HOURS_MOST if facts.limit_hours is None else facts.limit_hours
    return max(0, limit * MINUTES_PER_HOUR - facts.total_minutes) // MINUTES_PER_HOUR


def may_extend(run: RunFacts, facts: TimeFacts, hours: int = 1) -> Refusal | None:
    """Checks the run and its class; the user's permission is checked by `policy.may_manage`."""
    if run.is_over or run.is_stopping:
        return Refusal("not_running", "This workload is not running. Its time limit cannot be extended.", status=409)
    if facts.total_minutes is None:
        return Refusal("no_end", "This run has no time limit to extend.", status=409)
    if facts.ends_at is None:
        text = f"Its {duration_text(facts.total_minutes)} count from its start. Extend it after it has started."
        return Refusal("not_started", text, status=409)
    most = most_hours(facts)
    if 1 <= hours <= most:
        return None
    has = f"Its time limit is {duration_text(facts.total_minutes)} from its start, until {date_and_time(facts.ends_at)}"
    limit = RUN_HOURS_MOST if facts.limit_hours is None else facts.limit_hours
    if most == 0:
        text = f"{has}. {facts.class_name} allows {limit} h. Save your work, and start it again afterwards."
    else:
        text = f"{hours} h more requested. {has}. {facts.class_name} allows {limit} h. Request 1 to {most} h."
    return Refusal("exceeds_run_time", text, "hours")
