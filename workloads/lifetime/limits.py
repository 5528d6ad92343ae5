"""The limits of a run as pages show them: its time limit, its idle rule, and what this user may do about them.

Needs no query besides the given rows, unless the workload is declared with another class by now.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.utils import timezone

from accounts.core.actor import Actor
from portal.core.errors import Refusal
from portal.ui.text import date_and_time, duration_text
from workloads.core import policy, queries
from workloads.core.queries import watch_of
from workloads.lifetime.idle import policy as idle_policy
from workloads.lifetime.idle import queries as idle_queries
from workloads.lifetime.idle.queries import kept_until
from workloads.lifetime.run_time import policy as run_time_policy
from workloads.lifetime.run_time import queries as run_time_queries
from workloads.models import Run
from workloads.status.workload_row import WorkloadRow


@dataclass(frozen=True)
class TimeLimit:
    """`text`: the time limit. `most_hours`: what an extension may add now."""

    text: str
    ends_at: datetime | None
    most_hours: int
    refusal: Refusal | None


@dataclass(frozen=True)
class IdleRule:
    """`evidence`: of the last answer, "" before the first. `problem`: why the last check failed. `is_watched`: False
    before the run is ready; it cannot be idle then.
    """

    text: str
    evidence: str
    problem: str
    stops_at: datetime | None
    kept_until: datetime | None
    kept_reason: str
    most_hours: int
    refusal: Refusal | None
    is_watched: bool = True


@dataclass(frozen=True)
class RunLimits:
    """None: the limit does not apply, or the run is stopping or has ended."""

    run_time: TimeLimit | None = None
    idle_rule: IdleRule | None = None


def run_limits(by: Actor, team: policy.TeamFacts, row: WorkloadRow) -> RunLimits:
    run = row.run
    if run is None or run.ended_at is not None or run.stop_requested_at is not None:
        return RunLimits()
    return RunLimits(_run_time(by, team, row, run), _idle_rule(by, team, row, run))


def _run_time(by: Actor, team: policy.TeamFacts, row: WorkloadRow, run: Run) -> TimeLimit | None:
    facts = run_time_queries.time_facts(run, row.gpu_class)
    if facts.total_minutes is None:
        return None
    found = queries.run_facts(row.workload, run)
    added = f", including {duration_text(run.extended_minutes)} added" if run.extended_minutes else ""
    return TimeLimit(
        text=f"{duration_text(facts.total_minutes)} from its start{added}",
        ends_at=run.ends_at,
        most_hours=run_time_policy.most_hours(facts),
        refusal=policy.may_manage(by, team, found, "extend") or run_time_policy.may_extend(found, facts),
    )


def _idle_rule(by: Actor, team: policy.TeamFacts, row: WorkloadRow, run: Run) -> IdleRule | None:
    watch, minutes = watch_of(run), run.spec.get("idle_stop_minutes")
    if not minutes:
        return None
    found = queries.run_facts(row.workload, run)
    refusal = policy.may_manage(by, team, found, "keep")
    return IdleRule(
        text=f"stopped after {duration_text(minutes)} without activity",
        evidence=idle_queries.evidence_text(watch) if watch else "",
        problem=watch.problem if watch else "",
        stops_at=watch.stops_at if watch else None,
        kept_until=kept_until(watch),
        kept_reason=watch.kept_reason if watch else "",
        most_hours=idle_policy.KEEP_HOURS_MOST,
        refusal=refusal or idle_policy.may_keep(found, is_watched=watch is not None),
        is_watched=watch is not None,
    )


def limit_notices(run: Run | None) -> tuple[str, ...]:
    """Returns announced stops. They are the same for every user, and change only if an announcement changes."""
    if run is None or run.ended_at is not None or run.stop_requested_at is not None:
        return ()
    found = []
    total, watch = run_time_queries.total_minutes(run), watch_of(run)
    if total and run.ends_at and run_time_policy.due_warning(total, run.ends_at, timezone.now()):
        found.append(
            f"It reaches its time limit at {date_and_time(run.ends_at)} and is stopped then unless it is extended."
        )
    if watch and watch.stops_at:
        silent = f" {watch.problem} It is not stopped until it responds." if watch.problem else ""
        stops_at = date_and_time(watch.stops_at)
        found.append(f"It is idle and is stopped at {stops_at} unless it is used or kept.{silent}")
    return tuple(found)
