"""Who may replace a run with another run of the same workload. Pure."""

from __future__ import annotations

from accounts.core.actor import Actor
from portal.core.errors import Refusal
from workloads.core.policy import RunFacts, TeamFacts, may_start_in, may_stop


def may_restart(by: Actor, team: TeamFacts, run: RunFacts) -> Refusal | None:
    """May the actor stop the run, and start another one from the current declaration when it has ended?"""
    return may_stop(by, team, run) or may_start_in(by, team)


def may_start_next(*, is_active: bool, name: str) -> Refusal | None:
    """Checked when the previous run has ended. `name`: of the person who requested the next run. All other rules are
    checked again by the start.
    """
    if is_active:
        return None
    return Refusal("account_suspended", f"The account of {name}, who requested it, is suspended.", status=409)
