"""How long a run may take, when people are told of its end, and what an extension may add. Pure.

A run's time begins when its container starts: waiting in the queue costs nothing.
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
    """`total_minutes`: from its start, with what was added; None: no end. `ends_at` None: it has not started.
    `limit_hours`: of its class as it is now; None: no limit.
    """

    class_name: str
    total_minutes: int | None
    ends_at: datetime | None
    limit_hours: int | None


def warning_leads(total_minutes: int) -> tuple[timedelta, timedelta]:
    """How long before the end people are told, longest first: 30 and 5 minutes, less of a short run."""
    first = min(FIRST_LEAD, timedelta(minutes=total_minutes) / 10)
    return first, min(LAST_LEAD, first / 2)


def due_warning(total_minutes: int, ends_at: datetime, at: datetime) -> timedelta | None:
    """The latest warning whose moment has come; None before the first and after the end."""
    if at >= ends_at:
        return None
    return min((lead for lead in warning_leads(total_minutes) if ends_at - lead <= at), default=None)


def next_moment(total_minutes: int, ends_at: datetime, at: datetime) -> datetime:
    """When something is to be done about it next: told of, or ended."""
    moments = [ends_at - lead for lead in warning_leads(total_minutes)]
    return min((moment for moment in moments if moment > at), default=ends_at)


def time_over_message(total_minutes: int, added_minutes: int, ends_at: datetime) -> str:
    """What is said of a run that was ended by it."""
    started = ends_at - timedelta(minutes=total_minutes)
    added = f" ({duration_text(added_minutes)} of them added)" if added_minutes else ""
    return (
        f"Its run time of {duration_text(total_minutes)}{added} was over at {date_and_time(ends_at)}; "
        f"it started at {date_and_time(started)}."
    )


def most_hours(facts: TimeFacts) -> int:
    """What an extension may add now."""
    if facts.total_minutes is None or facts.ends_at is None:
        return 0
    limit = RUN_HOURS_MOST if facts.limit_hours is None else facts.limit_hours
    return max(0, limit * MINUTES_PER_HOUR - facts.total_minutes) // MINUTES_PER_HOUR


def may_extend(run: RunFacts, facts: TimeFacts, hours: int = 1) -> Refusal | None:
    """As far as the run and its class say; who may is `policy.may_manage`."""
    if run.is_over or run.is_stopping:
        return Refusal("not_running", "Nothing of it runs any more; there is no time to extend.", status=409)
    if facts.total_minutes is None:
        return Refusal("no_end", "This run has no end; there is nothing to extend.", status=409)
    if facts.ends_at is None:
        text = f"Its {duration_text(facts.total_minutes)} begin when it starts. Extend it when it runs."
        return Refusal("not_started", text, status=409)
    most = most_hours(facts)
    if 1 <= hours <= most:
        return None
    has = f"It has {duration_text(facts.total_minutes)} from its start and ends at {date_and_time(facts.ends_at)}"
    limit = RUN_HOURS_MOST if facts.limit_hours is None else facts.limit_hours
    if most == 0:
        text = f"{has}; a run on {facts.class_name} may take {limit} h. Save your work; it can be started again then."
    else:
        text = f"{hours} h more asked. {has}; a run on {facts.class_name} may take {limit} h. Ask for 1 to {most} h."
    return Refusal("exceeds_run_time", text, "hours")
