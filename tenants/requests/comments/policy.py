"""Who may comment on a request or ask back. Pure."""

from __future__ import annotations

from accounts.core.actor import Actor
from accounts.core.policy import scope_refusal
from accounts.models import Scope
from portal.core.errors import Refusal
from tenants.members.policy import Standing

COMMENT_MAX = 2000


def may_comment(
    by: Actor, standing: Standing, *, is_approver: bool, asks_back: bool, is_pending: bool, is_filer: bool = False
) -> Refusal | None:
    """`is_approver`: of a class in it. Members talk about their team's requests; asking back is an approver's."""
    if refusal := scope_refusal(by, Scope.DECIDE if asks_back else Scope.REQUEST):
        return refusal
    if not asks_back and (standing.role or is_approver or is_filer):
        return None
    if not is_approver or standing.role:
        text = "Comments are for the team and for who decides about one of the classes."
        return Refusal("not_allowed", text, status=403)
    if not is_pending:
        return Refusal(
            "already_decided", "No line of this request is pending any more; nobody has to answer.", status=409
        )
    return None


def comment_refusal(text: str) -> Refusal | None:
    if 1 <= len(text) <= COMMENT_MAX:
        return None
    return Refusal("bad_comment", f"A comment has 1 to {COMMENT_MAX:,} characters, this one has {len(text):,}.", "text")
