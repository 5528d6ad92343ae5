"""Which choices there are for the drain of a node, and who may make them until when. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime

from accounts.core.actor import Actor
from portal.core.errors import Refusal
from portal.ui.text import first_names
from workloads.core import policy as core_policy
from workloads.core.policy import RunFacts, TeamFacts

# It is moved off the node and starts again elsewhere. Nobody needs to choose it.
RESTART = "restart"
# It ends, and does not start again.
STOP = "stop"
CHOICES = (RESTART, STOP)
# Two more things happen, which nobody chooses. It ends before the drain: at its time limit, or since it is stopped.
ENDS_BEFORE = "ends_before"
# Without a queue nothing can move it. It runs on until it ends, and the drain waits for it.
STAYS = "stays"
OUTCOMES = (*CHOICES, ENDS_BEFORE, STAYS)


def chosen(choices: Mapping[str, str], maintenance: int | None) -> str:
    """What was chosen for this maintenance, and for no other one; "" if nothing was."""
    found = choices.get(str(maintenance), "")
    return found if found in CHOICES else ""


def with_choice(choices: Mapping[str, str], maintenance: int, choice: str) -> dict[str, str]:
    return {**choices, str(maintenance): choice}


def ends_before(ends_at: datetime | None, starts_at: datetime, *, is_stopping: bool) -> bool:
    """`ends_at`: of its time limit. Whatever was chosen, the maintenance neither moves nor stops such a run."""
    return is_stopping or (ends_at is not None and ends_at <= starts_at)


def if_there(choice: str, *, has_queue: bool, is_leaving: bool) -> str:
    """What the drain does to a run that has not ended. `is_leaving`: it was asked to leave a node before, which a queue
    is carrying out; without a queue nothing was moved, and the order of an earlier maintenance stays.
    """
    if choice == STOP and not (is_leaving and has_queue):
        return STOP
    return RESTART if has_queue else STAYS


def may_choose(by: Actor, team: TeamFacts, run: RunFacts) -> Refusal | None:
    """As for stopping the run."""
    if refusal := core_policy.may_stop(by, team, run):
        return refusal
    if run.is_stopping:
        return Refusal("not_running", "This workload is being stopped: it is not there at the drain.", status=409)
    return None


def choice_refusal(choice: str, *, is_concerned: bool, drained: Collection[str]) -> Refusal | None:
    """`is_concerned`: the run is on a node of this maintenance, which is neither canceled nor over. `drained`: those of
    its nodes whose drain has begun.
    """
    if choice not in CHOICES:
        return Refusal("invalid", f"Choose one of {', '.join(CHOICES)}.", "at_drain")
    if not is_concerned:
        text = "This workload is on no node of such a maintenance, or the maintenance was canceled or is over."
        return Refusal("not_in_maintenance", text, status=409)
    if drained:
        text = f"The drain of {first_names(sorted(drained))} has begun: the choice cannot be changed any more."
        return Refusal("drain_begun", text, status=409)
    return None
