"""Which kind of notice an event is, how people are notified by default, and what they cannot turn off. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from accounts.events.texts import outcomes
from accounts.models import NoticeChannel, NoticeKind

DEFAULTS = dict.fromkeys(NoticeKind, NoticeChannel.MAIL) | {NoticeKind.STARTED: NoticeChannel.PAGE}
# Always an email: who has taken over an account must not be able to hide it from its owner.
FIXED = frozenset({NoticeKind.ACCOUNT})

# Can be taken back, so their mails have no other text and are no part of another mail.
ALONE = frozenset({"announcement.made"})

KINDS: dict[str, NoticeKind] = {
    "request.filed": NoticeKind.WAITING,
    "request.reclaimed": NoticeKind.WAITING,
    "request.overdue": NoticeKind.WAITING,
    "team.asked": NoticeKind.WAITING,
    "request.commented": NoticeKind.COMMENT,
    "request.asked_back": NoticeKind.COMMENT,
    "run.started": NoticeKind.STARTED,
    "workload.interrupted": NoticeKind.PREEMPTED,
    "workload.node_leaving": NoticeKind.PREEMPTED,
    "workload.node_cordoned": NoticeKind.PREEMPTED,
    "workload.node_uncordoned": NoticeKind.PREEMPTED,
    "workload.resumed": NoticeKind.PREEMPTED,
    "workload.brought_back": NoticeKind.PREEMPTED,
    "workload.not_followed": NoticeKind.STOPPED,
    "workload.drain_stopped": NoticeKind.STOPPED,
    "workload.priority_changed": NoticeKind.STOPPED,
    "notebook.person_left": NoticeKind.STOPPED,
    "notebook.person_suspended": NoticeKind.STOPPED,
    "notebook.idle_stopped": NoticeKind.STOPPED,
    "run.time_over": NoticeKind.STOPPED,
    "run.idle_stopped": NoticeKind.STOPPED,
    "run.gpu_fault_told": NoticeKind.STOPPED,
    "gpu.fault_told": NoticeKind.WAITING,
    "run.idle_told": NoticeKind.EXPIRING,
    "run.idle_warned": NoticeKind.EXPIRING,
    "notebook.idle_warned": NoticeKind.EXPIRING,
    "run.reminded": NoticeKind.EXPIRING,
    "grant.reminded": NoticeKind.EXPIRING,
    "grant.ended": NoticeKind.EXPIRING,
    "trial.reminded": NoticeKind.EXPIRING,
    "namespace.reminded": NoticeKind.EXPIRING,
    "class.moved": NoticeKind.EXPIRING,
    "announcement.made": NoticeKind.ANNOUNCED,
    "join.asked": NoticeKind.JOIN,
    "join.answered": NoticeKind.JOIN,
    "invitation.accepted": NoticeKind.JOIN,
    "invitation.declined": NoticeKind.JOIN,
}
# Decisions, whose kind depends on their outcome.
DECISIONS = frozenset({"request.decided", "team.decided"})


def kind_of(verb: str, after: Mapping[str, Any]) -> NoticeKind:
    """`after` of the event has the outcome of a decision. Everything of accounts and tokens is about security, except
    that a token expires; everything else is about teams.
    """
    if verb in DECISIONS:
        return NoticeKind.APPROVED if True in outcomes(after) else NoticeKind.DENIED
    if verb == "token.created":
        return NoticeKind.EXPIRING
    if verb.startswith(("account.", "approver.", "deputy.")):
        return NoticeKind.ACCOUNT
    return KINDS.get(verb, NoticeKind.TEAM)


def page_of(body: str, portal: str) -> str:
    """The path of the page that a mail leads to: an address of this portal is the last word of such a mail."""
    last = body.split()[-1] if body.split() else ""
    return last.removeprefix(portal) if last.startswith(f"{portal}/") else ""
