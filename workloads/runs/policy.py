"""Who may replace a run by another one of the same workload. Pure."""

from __future__ import annotations

from accounts.core.actor import Actor
from portal.core.errors import Refusal
from workloads.core.policy import RunFacts, TeamFacts, may_launch_in, may_stop


def may_restart(by: Actor, team: TeamFacts, run: RunFacts) -> Refusal | None:
    """Stop the run, and start another as declared when it has ended."""
    return may_stop(by, team, run) or may_launch_in(by, team)


def may_start_next(*, is_active: bool, name: str) -> Refusal | None:
    """When the run before it has ended. `name`: of the person who requested it; all else is checked again then."""
    if is_active:
        return None
    return Refusal("account_suspended", f"The account of {name}, who requested it, is suspended.", status=409)
