"""Who may change the priority of a queued run, and to what. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from accounts.core.policy import scope_refusal
from accounts.models import Scope
from cluster.manifests.run_spec import PRIORITIES
from portal.core.errors import Refusal
from portal.core.plain_text import hidden_refusal
from workloads.launch.priorities.policy import unknown_priority

if TYPE_CHECKING:
    from accounts.core.actor import Actor

BECAUSE_LIMIT = 200


def may_set_priority(by: Actor) -> Refusal | None:
    """Of a queued run."""
    if refusal := scope_refusal(by, Scope.ADMIN):
        return refusal
    if by.operates:
        return None
    text = (
        "Only operators may change the priority of a queued run. Stop it and launch it with another priority, or "
        "contact an operator."
    )
    return Refusal("not_allowed", text, status=403)


def may_change_priority(
    priority: str, because: str, *, is_over: bool, is_stopping: bool, holds_units: bool
) -> Refusal | None:
    """May the actor change the priority of this run? `because`: the reason, which the run's people read."""
    if priority not in PRIORITIES:
        return unknown_priority(priority)
    if not 1 <= len(because) <= BECAUSE_LIMIT:
        text = f"Enter a reason of 1 to {BECAUSE_LIMIT} characters: the person who requested the run reads it."
        return Refusal("reason_missing", text, "because")
    if refusal := hidden_refusal("because", because):
        return refusal
    if is_over or is_stopping:
        return Refusal("not_running", "The run is not queued any more. Its priority cannot change.", status=409)
    if holds_units:
        text = "The run is admitted already. A priority can only be changed while a run is queued."
        return Refusal("not_waiting", text, status=409)
    return None
