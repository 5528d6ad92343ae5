"""What only operators may do, and the length of a reason. Pure; used by buttons and by actions."""

from __future__ import annotations

from accounts.core.actor import Actor
from accounts.core.policy import scope_refusal
from accounts.models import Scope
from portal.core.errors import Refusal

REASON_MAX = 500


def may_operate(by: Actor) -> Refusal | None:
    """Whether the actor may suspend, resume and close namespaces."""
    if refusal := scope_refusal(by, Scope.ADMIN):
        return refusal
    if by.operates:
        return None
    return Refusal("not_allowed", "Only operators can do this.", status=403)
