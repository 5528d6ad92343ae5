"""Texts of events: the verb of an Event → the middle of a sentence "<who> … <name>". Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

VERB_TEXTS = {
    "workload.launched": "launched",
    "workload.declared": "applied the configuration of",
    "workload.changed": "changed",
    "workload.started": "restarted",
    "workload.stopped": "stopped",
    "workload.priority_changed": "changed the priority of",
    "workload.superseded": "stopped (superseded by a newer push of its group)",
    "workload.restart_asked": "requested another run of",
    "workload.not_followed": "could not restart",
    "workload.deleted": "deleted",
    "workload.interrupted": "recorded the interruption of",
    "workload.node_leaving": "sent a notice about the node of",
    "workload.resumed": "recorded the recovery of",
    "workload.brought_back": "restarted (after an interruption)",
    "workload.drain_requested": "asked to move off its node",
    "workload.node_cordoned": "sent a notice about the cordoned node of",
    "workload.node_uncordoned": "sent a notice about the end of the cordon of the node of",
    "workload.maintenance_told": "sent a notice about maintenance for",
    "maintenance.planned": "planned",
    "maintenance.confirmed": "reported the work as done for",
    "maintenance.cancel_requested": "canceled",
    "maintenance.release_requested": "released without verification the nodes of",
    "maintenance.layout_added": "added to the MIG manager's file the layout of",
    "maintenance.step_begun": "began the next step of",
    "maintenance.node_restored": "restored, after a change by others, a node of",
    "maintenance.stuck": "reported as stuck",
    "maintenance.ended": "ended",
    "volume.delete_asked": "requested deletion of the volume",
    "volume.kept": "canceled deletion of the volume",
    "volume.gone": "deleted the volume",
    "secret.put": "added the secret",
    "secret.replaced": "replaced the secret",
    "secret.deleted": "deleted the secret",
    "registry.put": "added credentials for",
    "registry.replaced": "replaced the credentials for",
    "registry.deleted": "deleted the credentials for",
    "notebook.opened": "opened",
    "notebook.visibility_set": "changed who can open",
    "notebook.person_left": "stopped (its owner can no longer launch)",
    "notebook.person_suspended": "stopped (its owner's account is suspended)",
    "notebook.kept": "kept the idle notebook",
    "notebook.idle_warned": "sent an idle warning for",
    "notebook.idle_stopped": "stopped (idle)",
    "run.idle_told": "sent a notice about the idle GPUs of",
    "run.idle_warned": "sent an idle warning for the GPUs of",
    "run.idle_stopped": "stopped (idle GPUs)",
    "run.gpu_fault_told": "sent a notice about a fault of the GPU of",
    "gpu.fault_told": "sent a notice about a fault of",
    "run.idle_kept": "kept, although its GPUs are idle,",
    "run.started": "recorded the start of",
    "run.extended": "extended the time limit of",
    "run.reminded": "sent a time limit reminder for",
    "run.time_over": "stopped (time limit reached)",
    "account.signed_in": "signed in",
    "account.signed_out": "signed out",
    "account.glass_broken": "signed in with the break-glass account",
    "account.password_changed": "changed the password",
    "account.second_factor_added": "added a second factor",
    "account.second_factor_removed": "removed the second factor",
    "account.second_factor_dropped": "removed the lost second factor of",
    "account.recovery_codes_made": "created new recovery codes",
    "account.session_ended": "ended a session",
    "account.sessions_ended": "ended all other sessions",
    "account.roles_set": "set the roles of",
    "account.added": "created the account of",
    "account.connected": "connected single sign-on for",
    "account.disconnected": "removed single sign-on for",
    "account.password_code_made": "created a password code for",
    "account.password_set": "set the password (with a code)",
    "account.notices_set": "set the notification preferences",
    "account.suspended": "suspended",
    "account.restored": "restored",
    "approver.named": "granted approval rights to",
    "approver.ended": "removed approval rights of",
    "token.created": "created the token",
    "token.revoked": "revoked the token",
    "image.put": "added the image",
    "image.removed": "removed the image",
    "cluster.observe_only_begun": "began observe-only",
    "cluster.observe_only_ended": "ended observe-only",
    "cluster.settled": "set up the cluster",
    "cluster.job_deleted": "deleted a Job without a run in the cluster",
    "terms.accepted": "accepted the terms of",
    "request.filed": "submitted",
    "request.reclaimed": "proposed to reduce quota in",
    "request.withdrawn": "withdrew",
    "request.decided": "decided",
    "request.overdue": "marked as overdue",
    "request.commented": "commented on",
    "request.asked_back": "requested information about",
    "grant.reminded": "sent an expiry reminder for the grant",
    "grant.ended": "recorded as ended: the grant",
    "access.allowed": "gave the team access to",
    "access.ended": "ended the team's access to",
    "prefix.allowed": "allowed images with the prefix",
    "prefix.ended": "removed the allowed image prefix",
    "class.created": "created the class",
    "class.edited": "changed the class",
    "class.moved": "changed the state of the class",
    "class.held": "paused scheduling of",
    "class.released": "resumed scheduling of",
    "announcement.made": "published",
    "announcement.withdrawn": "withdrew",
    "announcement.acknowledged": "acknowledged",
    "banner.put": "published",
    "banner.removed": "removed",
    "proposal.dismissed": "dismissed the proposal",
    "proposal.restored": "restored the proposal",
    "tenant.created": "created the team",
    "tenant.sharing_set": "changed who can open new notebooks of",
    "namespace.changed": "changed the namespace",
    "budget.set": "set the",
    "budget.removed": "removed the",
    "budget.confirmed": "confirmed launches beyond the",
    "budget.reached": "sent a cost notice for the",
    "namespace.closed": "ended the grants of",
    "namespace.reminded": "sent a volume deletion reminder for",
    "namespace.gone": "deleted the last objects of",
    "namespace.refused": "rejected objects of",
    "member.added": "added a member to",
    "member.removed": "removed a member from",
    "member.changed": "changed a member's role in",
    "member.invited": "sent the",
    "invitation.revoked": "revoked the",
    "invitation.accepted": "accepted the invitation to",
    "invitation.declined": "declined the",
    "join.asked": "requested to join",
    "join.withdrawn": "withdrew the request to join",
    "join.answered": "answered a request to join",
    "team.asked": "requested the team",
    "team.withdrawn": "withdrew the request for the team",
    "team.decided": "decided the request for the team",
    "bundle.changed": "changed the bundle",
    "trial.begun": "started the trial",
    "trial.reminded": "sent a trial expiry reminder for",
    "rule.changed": "changed the rule",
    "deputy.named": "added the",
    "deputy.ended": "removed the",
}


# Texts for decisions with one outcome: (yes, no).
OUTCOME_TEXTS = {
    "request.decided": ("approved", "denied"),
    "team.decided": ("approved the request for the team", "denied the request for the team"),
    "join.answered": ("approved a request to join", "declined a request to join"),
}

# Texts for events of several causes, by `cause` of the event; older events have none.
CAUSE_TEXTS = {
    ("grant.ended", "expired"): "recorded the expiry of the grant",
    ("grant.ended", "replaced"): "recorded that another grant replaced",
    ("grant.ended", "reduced"): "recorded that a decision ended the grant",
    ("grant.ended", "closed"): "recorded the end (team closed) of the grant",
}


def verb_text(verb: str, after: Mapping[str, Any] | None = None) -> str:
    """An unknown verb becomes plain words: "class.moved" → "class moved". `after` of the event has the outcome."""
    if (text := CAUSE_TEXTS.get((verb, str((after or {}).get("cause", ""))))) is not None:
        return text
    told = set(outcomes(after or {}))
    if verb in OUTCOME_TEXTS and told in ({True}, {False}):
        yes, no = OUTCOME_TEXTS[verb]
        return yes if True in told else no
    return VERB_TEXTS.get(verb) or verb.replace(".", " ").replace("_", " ")


def outcomes(after: Mapping[str, Any]) -> list[Any]:
    """In a request, each decided line has its own outcome."""
    lines = after.get("lines")
    found = lines if isinstance(lines, list) else [after]
    return [one.get("approved", one.get("accepted")) for one in found if isinstance(one, Mapping)]
