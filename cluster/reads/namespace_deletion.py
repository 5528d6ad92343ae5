"""Why a deleted namespace still exists, from its conditions, as a sentence. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from cluster.reads.observed import Condition

# From the beginning of a word: otherwise each of its letters would be tried.
_LEFT = re.compile(r"(?<!\S)(\S+?)\.? has (\d+) resource instances")
_HELD = re.compile(r"(?<!\S)(\S+) in (\d+) resource instances")
# The API server reports these for objects that it could not read or delete.
_TROUBLES = {
    "NamespaceDeletionDiscoveryFailure": (
        "The API server cannot list its contents, because a part of the API does not respond.",
        "Repair or remove the API service that does not respond: kubectl get apiservices",
    ),
    "NamespaceDeletionGroupVersionParsingFailure": (
        "The API server cannot parse a part of its own API.",
        "Repair or remove that API service: kubectl get apiservices",
    ),
    "NamespaceDeletionContentFailure": (
        "The API server could not delete all of its contents.",
        "Read its message; the usual cause is a webhook that rejects requests or does not respond.",
    ),
}


@dataclass(frozen=True)
class DeletionBlocker:
    """`said`: what blocks the deletion; `do`: what to do; `raw`: the API server's message."""

    said: str
    do: str
    raw: str


@dataclass(frozen=True)
class RemainingObjects:
    """Objects of one resource that are left ("configmaps", "jobs.batch")."""

    resource: str
    count: int


def remaining_objects(conditions: Iterable[Condition]) -> list[RemainingObjects]:
    """Returns what is not deleted yet, by resource."""
    for condition in conditions:
        if condition.is_true and condition.type == "NamespaceContentRemaining":
            return [RemainingObjects(resource, int(count)) for resource, count in _LEFT.findall(condition.message)]
    return []


def deletion_blockers(namespace: str, conditions: Iterable[Condition]) -> list[DeletionBlocker]:
    """Returns what blocks a terminating namespace, API failures first; [] while no blocker is known."""
    known = [condition for condition in conditions if condition.is_true]
    found = [DeletionBlocker(*_TROUBLES[one.type], one.message) for one in known if one.type in _TROUBLES]
    remaining = remaining_objects(known)
    for condition in known:
        if condition.type == "NamespaceFinalizersRemaining":
            found += [
                _finalizer(namespace, name, int(count), remaining, condition.message)
                for name, count in _HELD.findall(condition.message)
            ]
    if remaining and not found:
        raw = next(one.message for one in known if one.type == "NamespaceContentRemaining")
        said = f"Remaining objects: {_list(remaining)}. No finalizer blocks them; they are being deleted."
        found.append(DeletionBlocker(said, "Wait. A pod on a lost node remains until the node is removed.", raw))
    return found


def _finalizer(namespace: str, name: str, count: int, remaining: list[RemainingObjects], raw: str) -> DeletionBlocker:
    objects = "1 object" if count == 1 else f"{count} objects"
    remains = f" Remaining objects: {_list(remaining)}." if remaining else ""
    kinds = ",".join(held.resource for held in remaining) or "all"
    columns = "KIND:.kind,NAME:.metadata.name,FINALIZERS:.metadata.finalizers"
    return DeletionBlocker(
        said=f"Finalizer {name} blocks the deletion of {objects}.{remains}",
        do=(
            f"Check that the controller that set {name} is running. To list the objects: kubectl -n {namespace} get "
            f"{kinds} -o custom-columns={columns}. Remove the finalizer manually only if that controller no longer "
            "exists."
        ),
        raw=raw,
    )


def _list(remaining: list[RemainingObjects]) -> str:
    return ", ".join(f"{held.count} {held.resource}" for held in remaining)
