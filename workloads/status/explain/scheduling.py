"""Why the scheduler finds no node for a pod: `0/8 nodes are available: <count> <reason>, …`. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from typing import NamedTuple

from cluster.reads.observed import Condition
from portal.ui.text import plural
from workloads.core.class_nodes import ClassNodes, SizedDevices
from workloads.core.observation import ClaimState
from workloads.status.explain.admission import refused_volume
from workloads.status.explain.quantities import Predicate, has, is_in_state
from workloads.status.explain.types import CONTACT_OPERATORS, STOP, STOP_OR_CHANGE, Explanation, volume_unusable

# How the names of Kueue's scheduling gates begin.
KUEUE_GATES = "kueue.x-k8s.io/"

# No device of the class with the requested memory is free.
NO_MEMORY = "gpu_memory_unavailable"

_NODES = re.compile(r"0/(\d+) nodes are available: (.*)", re.DOTALL)
_ITEM = re.compile(r"(\d+) (.+)")
_CLAIM = re.compile(r"persistentvolumeclaim \"([^\"]+)\" (not found|is being deleted)")

_NO_CLASS = re.compile(r"storageclass(?:\.storage\.k8s\.io)? \"([^\"]+)\" not found")

UNITS, SIZES, CLOSED, PORT, VOLUME, OTHER = "units", "sizes", "closed", "port", "volume", "other"
CORDONED, RESERVED = is_in_state("cordoned"), is_in_state("reserved for other workloads")
_OTHER_KIND = Predicate("does not match the class", "do not match the class")
# Kueue chooses the node of a pod: to the scheduler, the other nodes of the class do not match.
_NOT_CHOSEN = Predicate("is not the node that the queue chose", "are not the node that the queue chose")
_TAINT = re.compile(r"taint(?:s|\(s\))? \{([^:}]+): ?([^}]*)\}")
_TAINTS_SHOWN = 2
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
    ("untolerated taint", OTHER, lambda reason: _by_taint(reason)),
    ("taints that the pod", OTHER, lambda reason: _by_taint(reason)),
    ("had taint", OTHER, lambda reason: _by_taint(reason)),
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


def reserved(taints: Iterable[str]) -> Predicate:
    """Names the taints, as kubectl writes them."""
    known = sorted({taint for taint in taints if taint})
    if not known:
        return RESERVED
    more = f" and {len(known) - _TAINTS_SHOWN} more" if len(known) > _TAINTS_SHOWN else ""
    named = f"{' (taint' if len(known) == 1 else ' (taints'} {', '.join(known[:_TAINTS_SHOWN])}{more})"
    return Predicate(f"{RESERVED.one}{named}", f"{RESERVED.many}{named}")


def _by_taint(reason: str) -> Predicate:
    found = _TAINT.search(reason)
    return RESERVED if found is None else reserved([f"{found[1]}={found[2]}" if found[2] else found[1]])


def held_by_gates(gates: Collection[str]) -> Explanation | None:
    """The scheduler ignores a pod until its gates are removed. Kueue has gates of its own, and removes them itself."""
    foreign = [gate for gate in gates if not gate.startswith(KUEUE_GATES)]
    if not foreign:
        return None
    which = f"scheduling gate{'s' if len(foreign) > 1 else ''} {', '.join(foreign)}"
    return Explanation(
        "scheduling_gated",
        f"Admitted, but the scheduler places its pod only without the {which}, set by a policy of the cluster and not "
        "by the portal.",
        f"It starts when that policy's owner removes the gate. {CONTACT_OPERATORS}",
    )


def placing(claim: ClaimState | None) -> str:
    """What happens to a pod without a node of which the scheduler reports nothing."""
    if claim is None or not claim.is_in_the_making:
        return "The scheduler is choosing a node."
    return f"Its volume {claim.name} is being provisioned on node {claim.node}."


def not_provisioned(scheduled: Condition | None, claim: ClaimState | None) -> Explanation | None:
    """Explains a warning about the volume of a pod for which the scheduler has chosen a node. It reports nothing while
    the volume is provisioned there, and an error after ten minutes. None: no warning so far.
    """
    if scheduled is not None and scheduled.reason == "Unschedulable":
        return None
    return _unbound(claim) if claim is not None and claim.is_in_the_making and claim.problem else None


def unschedulable(
    message: str,
    near: ClassNodes | None = None,
    claim: ClaimState | None = None,
    devices: SizedDevices | None = None,
) -> Explanation:
    """Explains the condition PodScheduled=False of an admitted pod. `near`: nodes of its class, `claim`: its volume,
    `devices`: those with enough memory.
    """
    found = _unschedulable(message, near, claim)
    if found.reason == "devices_unavailable" and devices is not None:
        found = _no_device_of_size(devices) or found
    return found if found.raw else replace(found, raw=message, raw_from="the scheduler")


def _unschedulable(message: str, near: ClassNodes | None, claim: ClaimState | None) -> Explanation:
    if found := _CLAIM.search(message):
        if claim is not None and claim.refusal:
            return refused_volume(claim.name, claim.refusal)
        return volume_unusable(found[1], "missing" if found[2] == "not found" else "terminating")
    if "unbound immediate PersistentVolumeClaims" in message:
        return _unbound(claim)
    if "allocate all claims" in message or "resourceclaim" in message.lower() or "device class" in message:
        return _no_devices(_NODES.search(message))
    if "no nodes available to schedule" in message:
        return Explanation("no_nodes", "The cluster has no nodes.", CONTACT_OPERATORS)
    found = _NODES.search(message)
    if found is None:
        text = "The scheduler has not chosen a node yet."
        return Explanation("not_placed", text, CONTACT_OPERATORS, is_known=False)
    return _of_nodes(int(found[1]), found[2], near, claim)


def _unbound(claim: ClaimState | None) -> Explanation:
    if claim is None:
        text = "Waiting for the volume: the storage system has not provisioned it yet."
        return Explanation("volume_unbound", text, CONTACT_OPERATORS)
    named = f"the volume {claim.name}"
    if found := _NO_CLASS.search(claim.problem):
        lacks = f"its storage class {found[1]} does not exist in the cluster"
        text = f"Waiting for {named}: the storage system has not provisioned it yet; {lacks}."
        remedy = "Contact an operator, or choose another volume."
        return Explanation("volume_unbound", text, remedy, claim.problem, "the storage")
    if claim.problem:
        where = f" on node {claim.node}" if claim.node else ""
        text = f"Waiting for {named}: the storage system could not provision it{where}{_with_class(claim)}."
        return Explanation("volume_unbound", text, CONTACT_OPERATORS, claim.problem, "the storage")
    if not claim.storage_class:
        text = f"Waiting for {named}: it has no storage class, and the cluster has no default one."
        return Explanation("volume_unbound", text, CONTACT_OPERATORS)
    text = f"Waiting for {named}: the storage system has not provisioned it yet{_with_class(claim)}."
    return Explanation("volume_unbound", text, CONTACT_OPERATORS)


def _with_class(claim: ClaimState) -> str:
    return f" (storage class {claim.storage_class})" if claim.storage_class else ""


def _no_devices(found: re.Match[str] | None) -> Explanation:
    none = "No node" if found is None else f"None of the {found[1]} nodes"
    return Explanation(
        "devices_unavailable",
        f"{none} has the requested devices free.",
        "It starts when devices are free; fewer units may start sooner.",
        actions=STOP_OR_CHANGE,
        facts={} if found is None else {"nodes": int(found[1])},
    )


def _no_device_of_size(seen: SizedDevices) -> Explanation | None:
    """Returns None if enough of them are free: something else is missing. Kueue has admitted it by units alone."""
    if seen.most_on_one_node >= seen.units:
        return None
    size = f"with at least {seen.gib} GiB"
    if not seen.there:
        text = f"no device of its class has at least {seen.gib} GiB now."
    elif seen.free:
        most = f"at most {seen.most_on_one_node} on one node"
        text = f"no node has {plural(seen.units, 'free device')} {size}: {seen.free} of {seen.there} are free, {most}."
    else:
        where = "all in use" if seen.used >= seen.there else f"{seen.used} in use, the others on closed nodes"
        do = "does" if seen.there == 1 else "do"
        text = f"no free device has at least {seen.gib} GiB: {seen.there} of {seen.in_all} {do}, {where}."
    return Explanation(
        NO_MEMORY,
        f"Admitted, but {text} It holds its units meanwhile.",
        "It starts when such a device is free; with less GPU memory it may start sooner.",
        actions=STOP_OR_CHANGE,
        facts={
            "gpu_memory_gib": seen.gib,
            "units": seen.units,
            "fitting_units": seen.there,
            "free_units": seen.free,
            "most_on_one_node": seen.most_on_one_node,
        },
    )


def _of_nodes(count: int, reasons: str, near: ClassNodes | None, claim: ClaimState | None) -> Explanation:
    """One problem decides the remedy: on nodes that otherwise match, a free unit is more likely than another kind of
    node.
    """
    items = [_item(text) for text in re.split(r"[.,] (?=\d|preemption:|still )", _without_preemption(reasons))]
    known = [item for item in items if item is not None]
    if not known:
        text = f"Admitted, but none of the {count} nodes is available."
        return Explanation("not_placed", text, CONTACT_OPERATORS, facts={"nodes": count}, is_known=False)
    if claim is not None and claim.is_out_of_reach:
        known = [item._replace(kind=VOLUME, words=_NO_ACCESS) if item.words == _OTHER_KIND else item for item in known]
    known = [part for item in known for part in _of_class(item, count, near)]
    lack = next(kind for kind in REMEDIES if any(kind == item.kind for item in known))
    reason, remedy = REMEDIES[lack]
    if lack == VOLUME and claim is not None and claim.place.terms and near is not None and near.nodes:
        # Its volume was not bound when its Job was created.
        remedy = f"Start it again: it is placed {claim.place.words} then, where its volume is."
    nearest = {item.words for item in known if item.kind == lack}
    merged: dict[Predicate, int] = {}
    for item in known:
        merged[item.words] = merged.get(item.words, 0) + item.nodes
    listed = ", ".join(
        words.of(nodes) for words, nodes in sorted(merged.items(), key=lambda one: (one[0] not in nearest, -one[1]))
    )
    fits = "matches" if lack in (OTHER, VOLUME) else "is available"
    text = f"Admitted, but none of the {count} nodes {fits}: {listed}.{_volume(claim) if lack == VOLUME else ''}"
    actions = STOP_OR_CHANGE if lack in _CHANGE_HELPS else STOP
    is_known = all(item.is_known for item in known)
    return Explanation(reason, text, remedy, actions=actions, facts={"nodes": count}, is_known=is_known)


def _of_class(item: _NodeLack, count: int, near: ClassNodes | None) -> list[_NodeLack]:
    """Splits the nodes that do not match the pod: those of the class are not of another kind. The pod asks for nodes
    that can mount its volume, so that the others do not match either.
    """
    if item.words != _OTHER_KIND or near is None or not (near.nodes or near.elsewhere):
        return [item]
    others = min(item.nodes, max(0, count - len(near.nodes) - near.elsewhere))
    away = min(item.nodes - others, near.elsewhere)
    parts = (
        _NodeLack(others, OTHER, _OTHER_KIND),
        _NodeLack(away, OTHER if near.nodes else VOLUME, _NO_ACCESS),
        _NodeLack(item.nodes - others - away, OTHER, _NOT_CHOSEN),
    )
    return [part for part in parts if part.nodes]


def _volume(claim: ClaimState | None) -> str:
    """Names the volume, and where it is."""
    if claim is None:
        return ""
    of = f", of the storage class {claim.storage_class}" if claim.storage_class else ""
    zone = f" in the zone {claim.zone}" if claim.zone else ""
    where = f", was created for node {claim.node}{zone}" if claim.node else ""
    return f" The volume {claim.name}{of}{where}." if where else f" The volume is {claim.name}{of}."


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
