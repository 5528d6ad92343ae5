"""Why the scheduler finds no node for a pod: `0/8 nodes are available: <count> <reason>, …`. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from workloads.status.explain.quantities import Predicate, has, is_in_state
from workloads.status.explain.types import CONTACT_OPERATORS, STOP, STOP_OR_CHANGE, Explanation, volume_missing

_NODES = re.compile(r"0/(\d+) nodes are available: (.*)", re.DOTALL)
_ITEM = re.compile(r"(\d+) (.+)")
_CLAIM = re.compile(r"persistentvolumeclaim \"([^\"]+)\" (not found|is being deleted)")

UNITS, SIZES, CLOSED, PORT, VOLUME, OTHER = "units", "sizes", "closed", "port", "volume", "other"
CORDONED, RESERVED = is_in_state("cordoned"), is_in_state("reserved for other workloads")
_OTHER_KIND = Predicate("does not match the class", "do not match the class")
_NO_ACCESS = Predicate("cannot access the volume", "cannot access the volume")


def _too_little(what: str) -> Callable[[str], Predicate]:
    return lambda _: has(f"too little {what} free")


# The text in the scheduler's reason, what kind of problem it is, and what is stated about the nodes. The first match
# counts.
_REASONS: tuple[tuple[str, str, Callable[[str], Predicate]], ...] = (
    ("Insufficient ephemeral-storage", SIZES, _too_little("disk space")),
    ("Insufficient cpu", SIZES, _too_little("cpu")),
    ("Insufficient memory", SIZES, _too_little("memory")),
    ("Insufficient ", UNITS, lambda reason: has(f"too little {reason.removeprefix('Insufficient ')} free")),
    ("Too many pods", SIZES, lambda _: has("reached the pod limit")),
    ("didn't have free ports", PORT, lambda _: has("the port in use")),
    ("were unschedulable", CLOSED, lambda _: CORDONED),
    ("untolerated taint", OTHER, lambda _: RESERVED),
    ("taints that the pod", OTHER, lambda _: RESERVED),
    ("node affinity/selector", OTHER, lambda _: _OTHER_KIND),
    ("scheduler-enforced node affinity", OTHER, lambda _: _OTHER_KIND),
    ("PersistentVolume's node affinity", VOLUME, lambda _: _NO_ACCESS),
    ("volume node affinity conflict", VOLUME, lambda _: _NO_ACCESS),
    ("no available volume zone", VOLUME, lambda _: _NO_ACCESS),
    ("exceed max volume count", VOLUME, lambda _: has("reached the volume limit")),
    ("enough free storage", VOLUME, _too_little("storage")),
    ("already in-use by another pod", VOLUME, lambda _: has("the volume in use by another pod")),
    ("available persistent volumes to bind", VOLUME, lambda _: has("no matching volume")),
)
REMEDIES = {
    UNITS: ("no_node_fits", "It starts when a workload on a matching node ends; fewer units may start sooner."),
    SIZES: (
        "no_cpu_or_memory",
        "It starts when a workload on these nodes ends; or stop it and request less cpu or memory.",
    ),
    PORT: ("port_taken", "It starts when the port is free on a node."),
    VOLUME: ("volume_elsewhere", "Start it with another volume, or on a class whose nodes can access this volume."),
    CLOSED: ("nodes_closed", "It starts when a node is uncordoned. Ask an operator when."),
    OTHER: ("no_node_matches", "Contact an operator: the class does not match the cluster's nodes."),
}
_CHANGE_HELPS = (UNITS, SIZES, VOLUME)


class _NodeLack(NamedTuple):
    """What a number of nodes lack, in words. `is_known`: False if the words are the scheduler's own."""

    nodes: int
    kind: str
    words: Predicate
    is_known: bool = True


def unschedulable(message: str) -> Explanation:
    """Explains the condition PodScheduled=False of an admitted pod."""
    return replace(_unschedulable(message), raw=message, raw_from="the scheduler")


def _unschedulable(message: str) -> Explanation:
    if found := _CLAIM.search(message):
        return volume_missing(found[1], is_going=found[2] != "not found")
    if "unbound immediate PersistentVolumeClaims" in message:
        text = "Waiting for the volume: the storage system has not provisioned it yet."
        return Explanation("volume_unbound", text, CONTACT_OPERATORS)
    if "allocate all claims" in message or "resourceclaim" in message.lower() or "device class" in message:
        return _no_devices(_NODES.search(message))
    if "no nodes available to schedule" in message:
        return Explanation("no_nodes", "The cluster has no nodes.", CONTACT_OPERATORS)
    found = _NODES.search(message)
    if found is None:
        text = "The scheduler has not chosen a node yet."
        return Explanation("not_placed", text, CONTACT_OPERATORS, is_known=False)
    return _of_nodes(int(found[1]), found[2])


def _no_devices(found: re.Match[str] | None) -> Explanation:
    none = "No node" if found is None else f"None of the {found[1]} nodes"
    return Explanation(
        "devices_unavailable",
        f"{none} has the requested devices free.",
        "It starts when devices are free; fewer units may start sooner.",
        actions=STOP_OR_CHANGE,
        facts={} if found is None else {"nodes": int(found[1])},
    )


def _of_nodes(count: int, reasons: str) -> Explanation:
    """One problem decides the remedy: on nodes that otherwise match, a free unit is more likely than another kind of
    node.
    """
    items = [_item(text) for text in re.split(r"[.,] (?=\d|preemption:|still )", _without_preemption(reasons))]
    known = [item for item in items if item is not None]
    if not known:
        text = f"Admitted, but none of the {count} nodes is available."
        return Explanation("not_placed", text, CONTACT_OPERATORS, facts={"nodes": count}, is_known=False)
    lack = next(kind for kind in REMEDIES if any(kind == item.kind for item in known))
    reason, remedy = REMEDIES[lack]
    nearest = {item.words for item in known if item.kind == lack}
    merged: dict[Predicate, int] = {}
    for item in known:
        merged[item.words] = merged.get(item.words, 0) + item.nodes
    listed = ", ".join(
        words.of(nodes) for words, nodes in sorted(merged.items(), key=lambda one: (one[0] not in nearest, -one[1]))
    )
    fits = "matches" if lack in (OTHER, VOLUME) else "is available"
    text = f"Admitted, but none of the {count} nodes {fits}: {listed}."
    actions = STOP_OR_CHANGE if lack in _CHANGE_HELPS else STOP
    is_known = all(item.is_known for item in known)
    return Explanation(reason, text, remedy, actions=actions, facts={"nodes": count}, is_known=is_known)


def _without_preemption(reasons: str) -> str:
    return re.split(r"\.? *preemption: ", reasons)[0].strip().rstrip(".")


def _item(text: str) -> _NodeLack | None:
    found = _ITEM.fullmatch(text.strip().rstrip("."))
    if found is None:
        return None
    for part, kind, words in _REASONS:
        if part in found[2]:
            return _NodeLack(int(found[1]), kind, words(found[2]))
    return _NodeLack(int(found[1]), OTHER, is_in_state(f"excluded: “{found[2]}”"), is_known=False)
