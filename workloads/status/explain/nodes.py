"""Why no node of a class is available for a run, from what is known about each node. Pure.

Kueue tries the flavors of a resource in order and keeps only the last message: with several classes, that message often
says nothing about the run's own class. The nodes explain the wait, with more numbers.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace

from catalog.classes.capacity.autoscaling import coming_sentence
from portal.ui.text import plural
from workloads.core.class_nodes import ClassNode, ClassNodes
from workloads.core.observation import ClaimState, NodeTrouble, Observation
from workloads.status.explain.quantities import Predicate, are, is_in_state, units_of
from workloads.status.explain.scheduling import CLOSED, CORDONED, OTHER, REMEDIES, RESERVED, VOLUME, reserved
from workloads.status.explain.types import CONTACT_OPERATORS, STOP_OR_CHANGE, Explanation

_PREFIX = "couldn't assign flavors to pod set "
# Flavors of classes with an autoscaler have no topology, and other classes have other levels; Kueue compares that
# before the taint.
_RULED_OUT = (
    r"(?:untolerated taint \{gpu-portal/class [^}]*\} in flavor [a-z0-9.-]+"
    r"|Flavor \"[a-z0-9.-]+\" (?:(?:does not support|supports only) TopologyAwareScheduling"
    r"|does not contain the requested level))"
)
_OTHERS_ONLY = re.compile(rf"{_PREFIX}[a-z0-9-]+: {_RULED_OUT}(?:, {_RULED_OUT})*")
_DOMAINS = ("no topology domains at level", "to fit")

# The state that is likely to end first comes first: a cordoned node is uncordoned, a node that is down comes back, a
# taint stays.
_STATES = {CLOSED: CORDONED, "down": is_in_state("not ready"), OTHER: RESERVED}
_OFFERS_NONE = Predicate(
    "offers none: its device plugin may have stopped", "offer none: their device plugin may have stopped"
)
# An autoscaler adds a node for a pod that waits for these reasons.
_ADDED_FOR = frozenset({"no_node_fits", "no_node_matches", "no_nodes", "no_cpu_or_memory", "devices_unavailable"})
# Of a run of an earlier definition of its class.
_OTHER_DEFINITION = ("flavor_mismatch", "level_missing")
_ONE_NODE = "It starts when one node has enough free units"
_ALL_DOWN = f"It starts when one of them is ready again. {CONTACT_OPERATORS}"


def one_node_remedy(units: int, *, most_on_one: int | None = None) -> str:
    """`most_on_one`: free units of the node with the most; None: unknown. Fewer units help only if a node has some."""
    return f"{_ONE_NODE}; fewer units may start sooner." if units > 1 and most_on_one != 0 else f"{_ONE_NODE}."


def is_about_nodes(message: str) -> bool:
    """Returns whether Kueue found no node: its message says so, or names only the flavors of other classes."""
    return names_only_other_flavors(message) or ("topolog" in message and any(part in message for part in _DOMAINS))


def names_only_other_flavors(message: str) -> bool:
    return _OTHERS_ONLY.fullmatch(message) is not None


def by_nodes(
    observed: Observation, message: str, *, class_name: str, workers: int = 1, told: Explanation | None = None
) -> Explanation | None:
    """`message`: by Kueue; `told`: its explanation. Returns None if it is about something else, or if the nodes do not
    explain it: none would help a run of an earlier definition of its class, or that requests a level which it lacks.
    """
    seen = observed.nodes
    if seen is None or not is_about_nodes(message) or (told is not None and told.reason in _OTHER_DEFINITION):
        return None
    tied = observed.claim if seen.elsewhere else None
    found = _by_nodes(seen, class_name, workers, tied)
    if found is None:
        return None
    sentence = found.sentence + _on_cordoned(seen, class_name)
    if tied is not None and seen.nodes:
        others = plural(seen.elsewhere, "other node")
        sentence += f" Its volume {tied.name} can be mounted only {tied.place.words}, not on {others} of {class_name}."
    return replace(found, sentence=sentence, raw=message, raw_from="Kueue")


def for_pod(
    seen: ClassNodes | None, told: Explanation, class_name: str, *, max_units: int | None, minutes: int
) -> Explanation:
    """`told`: the explanation of the scheduler's message about the pod, which is admitted."""
    ending = _waits_for_terminating_pod(seen, told, class_name)
    return ending or node_coming(seen, told, max_units=max_units, minutes=minutes) or told


def _waits_for_terminating_pod(seen: ClassNodes | None, told: Explanation, class_name: str) -> Explanation | None:
    if seen is None or told.reason != "no_node_fits":
        return None
    found = _ending(seen, "Admitted, but the previous pod", class_name)
    return replace(found, raw=told.raw, raw_from=told.raw_from) if found else None


def node_coming(
    seen: ClassNodes | None, told: Explanation, *, max_units: int | None, minutes: int
) -> Explanation | None:
    """`told`: the explanation of the scheduler's message about the pod. `max_units`: with the nodes that are added on
    demand, None if none are.
    """
    there = sum(node.allocatable for node in seen.nodes) if seen is not None else 0
    if max_units is None or there >= max_units or told.reason not in _ADDED_FOR:
        return None
    remedy = "It starts when the node is ready. Contact an operator if this takes much longer."
    return replace(told, reason="node_coming", sentence=coming_sentence(minutes), remedy=remedy, facts={})


def lost_node(lost: NodeTrouble, node: str) -> Explanation:
    """Of a pod that runs there."""
    raw = f"{lost.reason}: {lost.message}" if lost.message else lost.reason
    if not lost.is_silent:
        text = f"Node {node} is not ready{f': {lost.message}' if lost.message else ''}."
        return Explanation("node_not_ready", text, CONTACT_OPERATORS, raw, "the kubelet")
    remedy = (
        "After 5 minutes Kubernetes gives up on the node. The run continues, or starts on another node, when this "
        f"node responds again or is removed from the cluster. {CONTACT_OPERATORS}"
    )
    text = f"Node {node} no longer responds; the state of the run is unknown."
    return Explanation("node_lost", text, remedy, raw, "the node controller")


def _by_nodes(seen: ClassNodes, class_name: str, workers: int, tied: ClaimState | None) -> Explanation | None:
    """`tied`: its volume, if that cannot be mounted on other nodes of the class."""
    if tied is not None and not seen.nodes:
        text = f"The volume {tied.name} can be mounted only {tied.place.words}, and no node of {class_name} is there."
        reason, remedy = REMEDIES[VOLUME]
        return Explanation(reason, text, remedy, actions=STOP_OR_CHANGE, facts={"nodes": 0})
    if not seen.nodes:
        text = f"No node in the cluster has the labels of {class_name}."
        return Explanation("no_node_matches", text, REMEDIES[OTHER][1], facts={"nodes": 0})
    if not seen.open:
        return _none_open(seen, class_name)
    if all(node.allocatable == 0 for node in seen.open):
        return _none_offered(seen, class_name)
    if seen.level and workers > 1:
        fit = sum(map(seen.fits, seen.best_domain))
        size, most = (seen.units, workers), seen.most_in_one_domain
        return None if fit >= workers else level_too_small(fit, size, class_name, seen.level, most=most)
    fit = sum(map(seen.fits, seen.nodes))
    if fit >= workers:
        return None
    if workers > 1:
        return gang_too_large(fit, (seen.units, workers), class_name)
    if seen.with_units:
        return _too_small(seen, class_name)
    return _ending(seen, "The previous pod", class_name) or _spread(seen, class_name)


def _on_cordoned(seen: ClassNodes, class_name: str) -> str:
    """Units that are free only on nodes that others cordoned, with the node that has the most."""
    nodes = sorted(seen.closed_with_units, key=lambda node: -node.free)
    if not nodes or nodes[0].cordon is None:
        return ""
    first, more = nodes[0], len(nodes) - 1
    others = f", and others on {plural(more, 'more cordoned node')}" if more else ""
    units = units_of(first.free, class_name)
    return f" {units} {are(first.free)} free on node {first.name}, {nodes[0].cordon.how}{others}."


def _ending(seen: ClassNodes, whose: str, class_name: str) -> Explanation | None:
    """All missing units are still in use by a terminating pod."""
    node = seen.ending_on
    if node is None:
        return None
    return Explanation(
        "previous_ending",
        f"{whose} is still terminating: {units_of(node.ending, class_name)} on node {node.name} {are(node.ending)} in "
        "use until it is gone.",
        f"It starts when that pod is gone, usually within a minute. {CONTACT_OPERATORS}",
        facts={"node": node.name, "units": seen.units, "ending_units": node.ending},
    )


def gang_too_large(fit: int, size: tuple[int, int], class_name: str, lacking: str = "") -> Explanation:
    """`size`: units per worker, and the number of workers."""
    units, workers = size
    return Explanation(
        "gang_fits_in_part",
        f"Only {fit} of {workers} workers with {units_of(units, class_name)} each fit on the nodes now{lacking}. "
        "All workers must start together.",
        "It starts when all workers fit; fewer workers may start sooner.",
        facts={"workers": workers, "fit": fit},
    )


def level_too_small(
    fit: int, size: tuple[int, int], class_name: str, level: str, *, most: int | None = None
) -> Explanation:
    """`fit`: in the domain of the level in which most fit; `most`: the same if no units were in use, None if not known.
    `size`: as of `gang_too_large`.
    """
    units, workers = size
    text = (
        f"Only {fit} of {workers} workers with {units_of(units, class_name)} each fit in one {level} now, and the job "
        "requires that all are in one."
    )
    facts = {"workers": workers, "fit": fit}
    if most is not None and most < workers:
        text = f"{text} None has units for more than {plural(most, 'worker')}, whether they are in use or not."
        remedy = f"Request {plural(most, 'worker')} or fewer, or prefer the level instead of requiring it."
        return Explanation("level_fits_in_part", text, remedy, is_final=True, actions=STOP_OR_CHANGE, facts=facts)
    remedy = f"It starts when all workers fit in one {level}; fewer workers may start sooner."
    return Explanation("level_fits_in_part", text, remedy, actions=STOP_OR_CHANGE, facts=facts)


def _spread(seen: ClassNodes, class_name: str) -> Explanation:
    free, on_one = sum(node.free for node in seen.open), max(node.free for node in seen.open)
    if not free:
        there = f"no {seen.resource} is free"
    elif on_one == free:
        there = f"{free} {are(free)} free on one node"
    else:
        there = f"{free} are free, at most {on_one} on one node"
    return Explanation(
        "no_node_fits",
        f"No single node has {units_of(seen.units, class_name)} free: {there}{_besides(seen)}.",
        one_node_remedy(seen.units, most_on_one=on_one),
        facts={"units": seen.units, "free_units": free, "most_on_one_node": on_one},
    )


def _besides(seen: ClassNodes) -> str:
    unhealthy = sum(max(0, node.capacity - node.allocatable) for node in seen.nodes if node.ready and node.allocatable)
    without = sum(node.is_open and not node.allocatable for node in seen.nodes)
    shut = _listed([node for node in seen.nodes if not node.is_open], of="node")
    ill = f"; {unhealthy} more {are(unhealthy)} unhealthy" if unhealthy else ""
    none = f"; {_OFFERS_NONE.of(without, 'node')}" if without else ""
    return f"{ill}{none}{f'; {shut}' if shut else ''}"


def _too_small(seen: ClassNodes, class_name: str) -> Explanation:
    """States the free amount only if a single resource is too small; with a smaller request of it, the run would
    fit.
    """
    lead = f"Units of {class_name} are free, but their nodes have too little"
    remedy = "It starts when a workload on these nodes ends; with less {} it may start sooner."
    cores = [node.cpu_free for node in seen.with_units if node.memory_free_gib >= seen.memory_gib]
    memory = [node.memory_free_gib for node in seen.with_units if node.cpu_free >= seen.cpu]
    facts = {"nodes": len(seen.nodes)}
    if not cores and not memory:
        text = f"{lead} cpu and memory free: {plural(seen.cpu, 'core')} and {seen.memory_gib} GiB requested."
        both = remedy.format("cpu and memory")
        return Explanation("no_cpu_or_memory", text, both, actions=STOP_OR_CHANGE, facts=facts)
    what, unit, asked, left = ("cpu", "core", seen.cpu, cores) if cores else ("memory", "GiB", seen.memory_gib, memory)
    most = max(0, int(max(left)))
    return Explanation(
        "no_cpu_or_memory",
        f"{lead} {what} free: {plural(asked, unit)} requested, at most {most} free on one node.",
        remedy.format(what),
        actions=STOP_OR_CHANGE,
        facts={**facts, "resource": what, "asked": asked, "available": most},
    )


def _none_open(seen: ClassNodes, class_name: str) -> Explanation:
    lack = _lack(seen.nodes)
    reason, remedy = ("nodes_down", _ALL_DOWN) if lack == "down" else REMEDIES[lack]
    text = f"No node of {class_name} is available: {_listed(seen.nodes)}."
    return Explanation(reason, text, remedy, facts={"nodes": len(seen.nodes)})


def _none_offered(seen: ClassNodes, class_name: str) -> Explanation:
    """A device plugin that stopped looks like devices that are all unhealthy: capacity without allocatable units."""
    count, known = len(seen.open), sum(node.capacity for node in seen.open)
    node = "its only schedulable node reports" if count == 1 else f"all {count} schedulable nodes report"
    none = f"0 of {known}: the device plugin there has stopped, or all are unhealthy" if known else "none"
    text = f"No units of {class_name} are allocatable: {node} {none}."
    remedy = "Contact an operator: the device plugin or the driver on these nodes has to be checked."
    return Explanation("no_units_offered", text, remedy, facts={"nodes": len(seen.nodes)})


def _lack(nodes: tuple[ClassNode, ...]) -> str:
    kinds = {_kind(node) for node in nodes}
    return next(kind for kind in _STATES if kind in kinds)


def _kind(node: ClassNode) -> str:
    return OTHER if node.kept else CLOSED if not node.schedulable else "down"


def _listed(nodes: tuple[ClassNode, ...] | list[ClassNode], of: str = "") -> str:
    counted = Counter(_kind(node) for node in nodes)
    states = {**_STATES, OTHER: reserved(node.taint for node in nodes if _kind(node) == OTHER)}
    return ", ".join(state.of(counted[kind], of) for kind, state in states.items() if counted[kind])
