"""Who may change the priority of a run that waits, and to what. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from accounts.core.policy import scope_refusal
from accounts.models import Scope
from cluster.manifests.run_spec import PRIORITIES
from portal.core.errors import Refusal
from workloads.launch.priorities.policy import unknown_priority

if TYPE_CHECKING:
    from accounts.core.actor import Actor

BECAUSE_LIMIT = 200


def may_set_priority(by: Actor) -> Refusal | None:
    """Of what waits, once it was asked for."""
    if refusal := scope_refusal(by, Scope.ADMIN):
        return refusal
    if by.operates:
        return None
    text = "Only operators change the priority of what waits. Stop it, and launch it with another one, or ask them."
    return Refusal("not_allowed", text, status=403)


def may_change_priority(
    priority: str, because: str, *, is_over: bool, is_stopping: bool, holds_units: bool
) -> Refusal | None:
    """Of one run. `because`: what its people read."""
    if priority not in PRIORITIES:
        return unknown_priority(priority)
    if not 1 <= len(because) <= BECAUSE_LIMIT:
        text = f"Say why, in up to {BECAUSE_LIMIT} characters: who asked for the run reads it."
        return Refusal("reason_missing", text, "because")
    if is_over or is_stopping:
        return Refusal("not_running", "Nothing of it waits any more; there is nothing to move.", status=409)
    if holds_units:
        text = "It has its units already; a priority can be changed while a run waits."
        return Refusal("not_waiting", text, status=409)
    return None
