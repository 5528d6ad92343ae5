"""Which namespaces may be adopted, and who may accept and undo. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection

from accounts.core.actor import Actor
from accounts.core.policy import scope_refusal
from accounts.models import Scope
from cluster.manifests.names import is_dns_label
from operations.adoption.models import Adoption
from portal.core.errors import Refusal
from portal.ui.text import first_names, plural

State = Adoption.State
# Namespaces of the system: the fence of the worker has the same list (deploy/base/fence-worker.yaml).
_SYSTEM = re.compile(r"default|(kube|kueue|openshift|gpu-portal)(-.*)?")


def namespace_refusal(name: str, *, is_known: bool | None) -> Refusal | None:
    """`is_known`: whether the cluster has a namespace of this name that is not the portal's. None: not known; then the
    worker, which reads the cluster itself, says whether it is there.
    """
    if _SYSTEM.fullmatch(name):
        return Refusal("bad_adoption", f"'{name}' belongs to the system and cannot be a team's.", "namespace")
    if not is_dns_label(name):
        text = f"'{name[:63]}' cannot be used: at most 63 lower-case letters, digits and single hyphens."
        return Refusal("bad_adoption", text, "namespace")
    if is_known is False:
        text = f"'{name}' does not exist in the cluster, or it is or was the namespace of a team."
        return Refusal("bad_adoption", text, "namespace")
    return None


def may_accept(by: Actor, *, role: str, state: State, is_read: bool, is_closed: bool, team: str) -> Refusal | None:
    if refusal := scope_refusal(by, Scope.LAUNCH):
        return refusal
    if role != "owner":
        return Refusal("not_allowed", f"Only owners of {team} can accept its adoption.", status=403)
    if is_closed:
        return Refusal("closed", f"{team} is closed.", status=409)
    if not is_read:
        text = "What the namespace contains is not known yet: it is read when the namespace has the label of the team."
        return Refusal("bad_adoption", text, status=409)
    if state not in (State.PROPOSED, State.ACCEPTED, State.UNDONE):
        return Refusal("bad_adoption", f"The adoption is {state.label}; it cannot be accepted now.", status=409)
    return None


def accepted_refusal(wanted: Collection[str], given: Collection[str]) -> Refusal | None:
    """The owner accepts exactly what was shown: `wanted` and `given` are keys of losses as text."""
    new, gone = set(wanted) - set(given), set(given) - set(wanted)
    if not new and not gone:
        return None
    said = [f"{first_names(sorted(new))} is new" if new else "", f"{first_names(sorted(gone))} is gone" if gone else ""]
    text = (
        f"The namespace has changed since the page was loaded: {'; '.join(filter(None, said))}. Check the list again."
    )
    return Refusal("conflict", text, "accepted", status=409)


def may_withdraw(state: State) -> Refusal | None:
    if state in (State.READING, State.PROPOSED, State.UNDONE):
        return None
    todo = "Undo it first." if state in (State.ACCEPTED, State.ADOPTED) else "There is nothing to withdraw."
    return Refusal("bad_adoption", f"The adoption is {state.label}. {todo}", status=409)


def may_undo(state: State, *, is_portals: bool, active_runs: int) -> Refusal | None:
    """`is_portals`: the adopted namespace was gone, for example in another cluster, so the portal made it itself."""
    if state not in (State.ACCEPTED, State.ADOPTED):
        return Refusal("bad_adoption", f"The adoption is {state.label}; there is nothing to undo.", status=409)
    if is_portals:
        text = (
            "The adopted namespace was no longer in the cluster, so the portal made one of its own: there is nothing "
            "to undo."
        )
        return Refusal("bad_adoption", text, status=409)
    if active_runs:
        text = f"{plural(active_runs, 'workload')} of the portal run in the namespace. Stop them first."
        return Refusal("bad_adoption", text, status=409)
    return None
