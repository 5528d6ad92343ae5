"""What happened, in words: the verb of an Event → the middle of a sentence "<who> … <name>". Pure."""

SENTENCES = {
    "workload.launched": "launched",
    "workload.declared": "declared",
    "workload.changed": "changed",
    "workload.started": "started again",
    "workload.stopped": "stopped",
    "workload.deleted": "deleted",
    "notebook.opened": "opened",
    "terms.accepted": "accepted the terms of",
    "request.filed": "filed",
    "request.withdrawn": "withdrew",
    "request.decided": "decided",
    "request.commented": "commented on",
    "request.asked_back": "asked back about",
    "access.allowed": "gave the team access to",
    "access.ended": "ended the team's access to",
    "class.created": "prepared",
    "class.edited": "changed",
    "class.moved": "changed the state of",
    "class.held": "held",
    "class.released": "released",
    "proposal.dismissed": "dismissed the proposal",
    "proposal.restored": "restored the proposal",
    "tenant.created": "founded",
    "namespace.changed": "changed the namespace",
    "member.added": "added a member to",
    "member.removed": "removed a member from",
    "member.changed": "changed a member's role in",
    "member.invited": "sent the",
    "invitation.revoked": "took back the",
    "invitation.accepted": "accepted the invitation to",
    "invitation.declined": "declined the",
    "join.asked": "asked to join",
    "join.withdrawn": "no longer asks to join",
    "join.answered": "answered a request to join",
}


def sentence(verb: str) -> str:
    """An unknown verb in plain words: "class.moved" → "class moved"."""
    return SENTENCES.get(verb) or verb.replace(".", " ").replace("_", " ")
