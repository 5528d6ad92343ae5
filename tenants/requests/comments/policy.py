"""Who may comment on a request or request information. Pure."""

from __future__ import annotations

from accounts.core.actor import Actor
from accounts.core.policy import scope_refusal
from accounts.models import Scope
from portal.core.errors import Refusal
from portal.core.plain_text import hidden_refusal
from tenants.members.policy import Standing

COMMENT_MAX = 2000


def may_comment(
    by: Actor, standing: Standing, *, is_approver: bool, asks_back: bool, is_pending: bool, is_filer: bool = False
) -> Refusal | None:
    """`is_approver`: for a class in the request. Members comment on their team's requests; only approvers request
    information.
    """
    if refusal := scope_refusal(by, Scope.DECIDE if asks_back else Scope.REQUEST):
        return refusal
    if not asks_back and (standing.role or is_approver or is_filer):
        return None
    if not is_approver or standing.role:
        text = "Only members of the team and approvers of its classes can comment."
        return Refusal("not_allowed", text, status=403)
    if not is_pending:
        return Refusal(
            "already_decided", "This request has no pending lines, so no information can be requested.", status=409
        )
    return None


def comment_refusal(text: str) -> Refusal | None:
    if 1 <= len(text) <= COMMENT_MAX:
        return hidden_refusal("text", text)
    return Refusal(
        "bad_comment", f"Enter a comment of 1 to {COMMENT_MAX:,} characters; this one has {len(text):,}.", "text"
    )
