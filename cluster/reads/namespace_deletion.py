"""Why a deleted namespace still exists, from its conditions, as a sentence. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from cluster.reads.observed import Condition

_LEFT = re.compile(r"(\S+?)\.? has (\d+) resource instances")
_HELD = re.compile(r"(\S+) in (\d+) resource instances")
# The API server says these of what it could not look at, or could not delete.
_TROUBLES = {
    "NamespaceDeletionDiscoveryFailure": (
        "The API server cannot find out what is in it, because a part of the API does not answer.",
        "Repair or remove the API service that does not answer: kubectl get apiservices",
    ),
    "NamespaceDeletionGroupVersionParsingFailure": (
        "The API server does not understand a part of its own API.",
        "Repair or remove that API service: kubectl get apiservices",
    ),
    "NamespaceDeletionContentFailure": (
        "The API server could not delete everything in it.",
        "Read its answer; a webhook that refuses or does not answer is the usual cause.",
    ),
}


@dataclass(frozen=True)
class DeletionBlocker:
    """`said`: what blocks it; `do`: what to do; `raw`: the API server's own words."""

    said: str
    do: str
    raw: str


@dataclass(frozen=True)
class RemainingObjects:
    """Objects of one resource that are left ("configmaps", "jobs.batch")."""

    resource: str
    count: int


def remaining_objects(conditions: Iterable[Condition]) -> list[RemainingObjects]:
    """By resource, what has not gone yet."""
    for condition in conditions:
        if condition.is_true and condition.type == "NamespaceContentRemaining":
            return [RemainingObjects(resource, int(count)) for resource, count in _LEFT.findall(condition.message)]
    return []


def deletion_blockers(namespace: str, conditions: Iterable[Condition]) -> list[DeletionBlocker]:
    """What keeps a namespace that is terminating, troubles first; [] while nothing is known to block it."""
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
        said = f"{_list(remaining)} still there, and no finalizer holds them: they are on their way out."
        found.append(
            DeletionBlocker(said, "Wait a moment. A pod on a node that is gone stays until the node is removed.", raw)
        )
    return found


def _finalizer(namespace: str, name: str, count: int, remaining: list[RemainingObjects], raw: str) -> DeletionBlocker:
    objects = "1 object" if count == 1 else f"{count} objects"
    among = f" among {_list(remaining)}" if remaining else ""
    kinds = ",".join(held.resource for held in remaining) or "all"
    columns = "KIND:.kind,NAME:.metadata.name,FINALIZERS:.metadata.finalizers"
    return DeletionBlocker(
        said=f"The finalizer {name} holds {objects}{among}.",
        do=(
            f"Whatever set {name} has to let go: see that it runs. Which objects: kubectl -n {namespace} get {kinds} "
            f"-o custom-columns={columns}. Only if it is gone for good, take the finalizer off by hand."
        ),
        raw=raw,
    )


def _list(remaining: list[RemainingObjects]) -> str:
    return ", ".join(f"{held.count} of {held.resource}" for held in remaining)
