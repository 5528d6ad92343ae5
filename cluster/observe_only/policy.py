"""Who decides whether the portal writes to the cluster."""

from __future__ import annotations

from accounts.core.actor import Actor
from accounts.core.policy import scope_refusal
from accounts.models import Scope
from portal.core.errors import Refusal


def may_set(by: Actor) -> Refusal | None:
    if refusal := scope_refusal(by, Scope.ADMIN):
        return refusal
    if by.operates:
        return None
    text = "Only operators and administrators can decide whether the portal writes to the cluster."
    return Refusal("not_allowed", text, status=403)
