"""Who may have a run replaced by another one of the same workload. Pure."""

from __future__ import annotations

from accounts.core.actor import Actor
from portal.core.errors import Refusal
from workloads.core.policy import RunFacts, TeamFacts, may_launch_in, may_stop


def may_restart(by: Actor, team: TeamFacts, run: RunFacts) -> Refusal | None:
    """Stop what runs, and start it again as it is declared when it has ended."""
    return may_stop(by, team, run) or may_launch_in(by, team)


def may_start_next(*, is_active: bool, name: str) -> Refusal | None:
    """When the run that is to be followed has ended. `name`: of the person who asked; all else is asked again then."""
    if is_active:
        return None
    return Refusal("account_suspended", f"The account of {name}, who asked for it, is suspended.", status=409)
