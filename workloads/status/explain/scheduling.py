"""Why the scheduler finds no node for a pod: `0/8 nodes are available: <count> <reason>, …`. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from workloads.status.explain.types import CONTACT_OPERATORS, STOP, STOP_OR_CHANGE, Explanation, volume_missing

_NODES = re.compile(r"0/(\d+) nodes are available: (.*)", re.DOTALL)
_ITEM = re.compile(r"(\d+) (.+)")
_CLAIM = re.compile(r"persistentvolumeclaim \"([^\"]+)\" (not found|is being deleted)")

CARDS, SIZES, CLOSED, PORT, VOLUME, OTHER = "cards", "sizes", "closed", "port", "volume", "other"
# What is said of so many nodes, and what kind of lack it is. The first that the reason contains.
_REASONS: tuple[tuple[str, str, Callable[[str], str]], ...] = (
    ("Insufficient ephemeral-storage", SIZES, lambda _: "too little disk space free"),
    ("Insufficient cpu", SIZES, lambda _: "too little cpu free"),
    ("Insufficient memory", SIZES, lambda _: "too little memory free"),
    ("Insufficient ", CARDS, lambda reason: f"too little {reason.removeprefix('Insufficient ')} free"),
    ("Too many pods", SIZES, lambda _: "as many pods as they may"),
    ("didn't have free ports", PORT, lambda _: "its port in use"),
    ("were unschedulable", CLOSED, lambda _: "closed for new work"),
    ("untolerated taint", OTHER, lambda _: "kept for other work"),
    ("taints that the pod", OTHER, lambda _: "kept for other work"),
    ("node affinity/selector", OTHER, lambda _: "of another kind"),
    ("scheduler-enforced node affinity", OTHER, lambda _: "of another kind"),
    ("PersistentVolume's node affinity", VOLUME, lambda _: "cannot reach its volume"),
    ("volume node affinity conflict", VOLUME, lambda _: "cannot reach its volume"),
    ("no available volume zone", VOLUME, lambda _: "cannot reach its volume"),
    ("exceed max volume count", VOLUME, lambda _: "as many volumes as they can"),
    ("enough free storage", VOLUME, lambda _: "too little storage free"),
    ("already in-use by another pod", VOLUME, lambda _: "its volume in use by another pod"),
    ("available persistent volumes to bind", VOLUME, lambda _: "no volume for it"),
)
_HAVE = ("too ", "as many", "its ", "no ")
REMEDIES = {
    CARDS: ("no_node_fits", "It starts when something ends on a fitting node; fewer units may start sooner."),
    SIZES: ("no_cpu_or_memory", "It starts when something ends there; or stop it and ask for less cpu or memory."),
    PORT: ("port_taken", "It starts when the port is free there."),
    VOLUME: ("volume_elsewhere", "Start it with another volume, or on a class whose nodes can reach this one."),
    CLOSED: ("nodes_closed", "It starts when a node is opened again; the operators know when."),
    OTHER: ("no_node_matches", "Tell the operators: the class and the nodes of the cluster do not agree."),
}
_CHANGE_HELPS = (CARDS, SIZES, VOLUME)


class _NodeLack(NamedTuple):
    """What so many nodes lack, in words. `is_known`: False where the words are the scheduler's own."""

    nodes: int
    kind: str
    words: str
    is_known: bool = True


def unschedulable(message: str) -> Explanation:
    """The condition PodScheduled=False of an admitted pod."""
    return replace(_unschedulable(message), raw=message, raw_from="the scheduler")


def _unschedulable(message: str) -> Explanation:
    if found := _CLAIM.search(message):
        return volume_missing(found[1], is_going=found[2] != "not found")
    if "unbound immediate PersistentVolumeClaims" in message:
        text = "Waits for its volume: the storage has not provided it yet."
        return Explanation("volume_unbound", text, CONTACT_OPERATORS)
    if "allocate all claims" in message or "resourceclaim" in message.lower() or "device class" in message:
        return _no_devices(_NODES.search(message))
    if "no nodes available to schedule" in message:
        return Explanation("no_nodes", "The cluster has no node at the moment.", CONTACT_OPERATORS)
    found = _NODES.search(message)
    if found is None:
        text = "Waits for the scheduler to choose a node."
        return Explanation("not_placed", text, CONTACT_OPERATORS, is_known=False)
    return _of_nodes(int(found[1]), found[2])


def _no_devices(found: re.Match[str] | None) -> Explanation:
    none = "No node" if found is None else f"None of the {found[1]} nodes"
    return Explanation(
        "devices_unavailable",
        f"{none} can give it the devices that it claims right now.",
        "It starts when devices are free; fewer units may start sooner.",
        actions=STOP_OR_CHANGE,
        facts={} if found is None else {"nodes": int(found[1])},
    )


def _of_nodes(count: int, reasons: str) -> Explanation:
    """One lack decides what helps: on nodes that are otherwise right, a free card is nearer than another kind."""
    items = [_item(text) for text in re.split(r"[.,] (?=\d|preemption:|still )", _without_preemption(reasons))]
    known = [item for item in items if item is not None]
    if not known:
        text = f"Units are assigned, but none of the {count} nodes takes it."
        return Explanation("not_placed", text, CONTACT_OPERATORS, facts={"nodes": count}, is_known=False)
    lack = next(kind for kind in REMEDIES if any(kind == item.kind for item in known))
    reason, remedy = REMEDIES[lack]
    nearest = {item.words for item in known if item.kind == lack}
    merged: dict[str, int] = {}
    for item in known:
        merged[item.words] = merged.get(item.words, 0) + item.nodes
    listed = ", ".join(
        f"{nodes} {verb(nodes, words)}{words}"
        for words, nodes in sorted(merged.items(), key=lambda one: (one[0] not in nearest, -one[1]))
    )
    takes = "is one for it" if lack in (OTHER, VOLUME) else "takes it now"
    text = f"Units are assigned, but none of the {count} nodes {takes}: {listed}."
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
    return _NodeLack(int(found[1]), OTHER, f"say “{found[2]}”", is_known=False)


def verb(nodes: int, words: str) -> str:
    if words.startswith(_HAVE):
        return "has " if nodes == 1 else "have "
    if words.startswith(("cannot", "say")):
        return ""
    return "is " if nodes == 1 else "are "
