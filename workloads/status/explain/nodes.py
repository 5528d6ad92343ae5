"""Why none of the nodes of a class takes a run, by what is known of each of them. Pure.

Kueue tries the flavors of a resource one after the other and keeps the last text alone: of a team's several classes it
often says nothing about the run's own. The nodes tell, and with more numbers.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace

from workloads.core.class_nodes import ClassNode, ClassNodes
from workloads.status.explain.quantities import are, units_of
from workloads.status.explain.scheduling import CLOSED, OTHER, REMEDIES, verb
from workloads.status.explain.types import CONTACT_OPERATORS, STOP_OR_CHANGE, Explanation

_PREFIX = "couldn't assign flavors to pod set "
_RULED_OUT = r"untolerated taint \{gpu-portal/class [^}]*\} in flavor [a-z0-9.-]+"
_OTHERS_ONLY = re.compile(rf"{_PREFIX}[a-z0-9-]+: {_RULED_OUT}(?:, {_RULED_OUT})*")
_DOMAINS = ("no topology domains at level", "to fit")

_WORDS = {CLOSED: "closed for new work", OTHER: "kept for other work", "down": "not ready"}
_ALL_DOWN = "It starts when one of them is ready again. Tell the operators if it takes long."


def is_about_nodes(message: str) -> bool:
    """Whether Kueue holds it back for want of a node: it says so, or it has nothing to say but of other classes."""
    return names_only_other_flavors(message) or ("topolog" in message and any(part in message for part in _DOMAINS))


def names_only_other_flavors(message: str) -> bool:
    return _OTHERS_ONLY.fullmatch(message) is not None


def by_nodes(seen: ClassNodes | None, message: str, *, class_name: str, workers: int = 1) -> Explanation | None:
    """`message`: what Kueue says. None: it is about something else, or nothing is known that explains it."""
    if seen is None or not is_about_nodes(message):
        return None
    found = _by_nodes(seen, class_name, workers)
    return replace(found, raw=message, raw_from="Kueue") if found else None


def waits_for_terminating_pod(seen: ClassNodes | None, told: Explanation, class_name: str) -> Explanation | None:
    """`told`: what the scheduler says of the pod, whose units are assigned."""
    if seen is None or told.reason != "no_node_fits":
        return None
    found = _ending(seen, "Assigned; the previous pod", class_name)
    return replace(found, raw=told.raw, raw_from=told.raw_from) if found else None


def _by_nodes(seen: ClassNodes, class_name: str, workers: int) -> Explanation | None:
    if not seen.nodes:
        text = f"No node of the cluster has the labels of {class_name}."
        return Explanation("no_node_matches", text, REMEDIES[OTHER][1], facts={"nodes": 0})
    if not seen.open:
        return _none_open(seen, class_name)
    if all(node.allocatable == 0 for node in seen.open):
        return _none_offered(seen, class_name)
    fit = sum(map(seen.fits, seen.nodes))
    if fit >= workers:
        return None
    if workers > 1:
        return gang_too_large(fit, (seen.units, workers), class_name)
    if seen.with_units:
        return _too_small(seen, class_name)
    return _ending(seen, "The previous pod", class_name) or _spread(seen, class_name)


def _ending(seen: ClassNodes, whose: str, class_name: str) -> Explanation | None:
    """Where all that is missing is held by a pod that was told to go."""
    node = seen.ending_on
    if node is None:
        return None
    what = "this card" if node.ending == 1 else "these cards"
    return Explanation(
        "previous_ending",
        f"{whose} on {what} is still ending: {units_of(node.ending, class_name)} {are(node.ending)} held on the node "
        f"{node.name} until it is gone.",
        f"It starts when that is gone, mostly within a minute. {CONTACT_OPERATORS}",
        facts={"node": node.name, "units": seen.units, "ending_units": node.ending},
    )


def gang_too_large(fit: int, size: tuple[int, int], class_name: str, lacking: str = "") -> Explanation:
    """`size`: units of each, and how many workers."""
    units, workers = size
    return Explanation(
        "gang_fits_in_part",
        f"Only {fit} of {workers} workers with {units_of(units, class_name)} each fit on nodes right now{lacking}. "
        "They start together or not at all.",
        "It starts when all of them fit; fewer workers may start sooner.",
        facts={"workers": workers, "fit": fit},
    )


def _spread(seen: ClassNodes, class_name: str) -> Explanation:
    free, on_one = sum(node.free for node in seen.open), max(node.free for node in seen.open)
    if not free:
        there = f"nothing of {seen.resource} is left"
    elif on_one == free:
        there = f"{free} {are(free)} free there"
    else:
        there = f"{free} are free, but at most {on_one} on one node"
    return Explanation(
        "no_node_fits",
        f"No single node has {units_of(seen.units, class_name)} free right now: {there}{_besides(seen)}.",
        "It starts when one node has enough; fewer units may start sooner.",
        facts={"units": seen.units, "free_units": free, "most_on_one_node": on_one},
    )


def _besides(seen: ClassNodes) -> str:
    unhealthy = sum(max(0, node.capacity - node.allocatable) for node in seen.nodes if node.ready)
    shut = _listed([node for node in seen.nodes if not node.is_open], of="node")
    ill = f"; {unhealthy} more {are(unhealthy)} not healthy" if unhealthy else ""
    return f"{ill}{f'; {shut}' if shut else ''}"


def _too_small(seen: ClassNodes, class_name: str) -> Explanation:
    """How much is left is only told of what alone is short: with less of it, it would fit."""
    lead = f"Units of {class_name} are free, but too little"
    remedy = "It starts when something ends there; with less {} it may start sooner."
    cores = [node.cpu_free for node in seen.with_units if node.memory_free_gib >= seen.memory_gib]
    memory = [node.memory_free_gib for node in seen.with_units if node.cpu_free >= seen.cpu]
    facts = {"nodes": len(seen.nodes)}
    if not cores and not memory:
        text = f"{lead} cpu and memory is left beside them: {seen.cpu} cores and {seen.memory_gib} GiB asked."
        return Explanation("no_cpu_or_memory", text, remedy.format("of both"), actions=STOP_OR_CHANGE, facts=facts)
    what, unit, asked, left = ("cpu", "cores", seen.cpu, cores) if cores else ("memory", "GiB", seen.memory_gib, memory)
    most = max(0, int(max(left)))
    return Explanation(
        "no_cpu_or_memory",
        f"{lead} {what} is left beside them: {asked} {unit} asked, at most {most} on one node.",
        remedy.format(what),
        actions=STOP_OR_CHANGE,
        facts={**facts, "resource": what, "asked": asked, "available": most},
    )


def _none_open(seen: ClassNodes, class_name: str) -> Explanation:
    lack = _lack(seen.nodes)
    reason, remedy = ("nodes_down", _ALL_DOWN) if lack == "down" else REMEDIES[lack]
    text = f"None of the nodes of {class_name} takes it now: {_listed(seen.nodes)}."
    return Explanation(reason, text, remedy, facts={"nodes": len(seen.nodes)})


def _none_offered(seen: ClassNodes, class_name: str) -> Explanation:
    count, ill = len(seen.open), sum(node.capacity for node in seen.open)
    node = "its only open node advertises" if count == 1 else f"all {count} open nodes advertise"
    none = "the only one there is not" if ill == 1 else f"none of the {ill} there is"
    text = f"No units of {class_name} are on offer: {node} 0{f'; {none} healthy' if ill else ''}."
    remedy = "Tell the operators: the device plugin or the driver there may be down."
    return Explanation("no_units_offered", text, remedy, facts={"nodes": len(seen.nodes)})


def _lack(nodes: tuple[ClassNode, ...]) -> str:
    """What is nearest to an end: a closed node is opened, one that is down comes back, what is kept stays kept."""
    kinds = {_kind(node) for node in nodes}
    return next(kind for kind in _WORDS_BY_HOPE if kind in kinds)


_WORDS_BY_HOPE = (CLOSED, "down", OTHER)


def _kind(node: ClassNode) -> str:
    return OTHER if node.kept else CLOSED if not node.schedulable else "down"


def _listed(nodes: tuple[ClassNode, ...] | list[ClassNode], of: str = "") -> str:
    counted = Counter(_kind(node) for node in nodes)
    parts = []
    for kind in _WORDS_BY_HOPE:
        if count := counted[kind]:
            noun = f" {of}{'' if count == 1 else 's'}" if of else ""
            parts.append(f"{count}{noun} {verb(count, _WORDS[kind])}{_WORDS[kind]}")
    return ", ".join(parts)
