"""Groups findings on single nodes into one proposal per kind, with node labels that no other node has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from catalog.discovery.dra_devices import are_disjoint
from catalog.discovery.naming import SLUG_LIMIT, class_title, product_slug
from catalog.discovery.types import ClassProposal, NodeFacts
from cluster.manifests.names import dns_label, short_hash
from cluster.manifests.node_removal.spot import spot_label

MACHINE = "nvidia.com/gpu.machine"
# Tried in this order when the labels of a kind match nodes of another kind too.
MORE_LABELS = (
    "nvidia.com/gpu.sharing-strategy",
    "nvidia.com/gpu.replicas",
    "nvidia.com/mig.strategy",
    "nvidia.com/device-plugin.config",
    "gpu.intel.com/product",
    MACHINE,
    "node.kubernetes.io/instance-type",
    # Of nodes that are no spot nodes too.
    "karpenter.sh/capacity-type",
    "eks.amazonaws.com/capacityType",
    "cloud.google.com/gke-nodepool",
    "kubernetes.azure.com/agentpool",
)


@dataclass(frozen=True)
class Sighting:
    """A proposal for the hardware of one node. `layout_weight`: its weight by the MIG layout of the node; None: unknown
    or not the same on all GPUs.
    """

    node: NodeFacts
    proposal: ClassProposal
    layout_weight: Fraction | None


@dataclass(frozen=True)
class _Kind:
    proposal: ClassProposal
    nodes: tuple[NodeFacts, ...]


def merge_sightings(seen: Iterable[Sighting]) -> tuple[tuple[ClassProposal, ...], set[str]]:
    """Returns proposals sorted by slug, and a sentence for every kind that no label distinguishes from another."""
    groups: dict[Any, list[Sighting]] = {}
    for one in sorted(seen, key=lambda sighting: sighting.node.name):
        groups.setdefault(_key(one.proposal), []).append(one)
    split = [part for group in groups.values() for part in _by_machine(group)]
    kinds = _named_apart([_merge(group) for group in split])
    proposals, problems = [], set()
    for kind in kinds:
        others = [other for other in kinds if other is not kind and _may_be_confused(kind.proposal, other.proposal)]
        separated, confused = _separated(kind, others)
        if confused:
            problems.add(confused)
        else:
            proposals.append(separated)
    return tuple(sorted(proposals, key=lambda proposal: proposal.slug)), problems


def _may_be_confused(one: ClassProposal, other: ClassProposal) -> bool:
    """A claim takes only devices that its selector matches, so labels need not distinguish the nodes of such kinds."""
    is_of_selectors = bool(one.device_selector and other.device_selector)
    apart = is_of_selectors and are_disjoint(one.device_selector, other.device_selector)
    return one.resource == other.resource and not apart


def _key(one: ClassProposal) -> Any:
    spot = spot_label(one.node_labels)
    return one.resource, one.product, one.partition, one.sharing, one.replicas, one.device_selector, spot


def _by_machine(group: list[Sighting]) -> list[list[Sighting]]:
    """How several whole GPUs are connected depends on the machine: different machines become different classes if a
    label distinguishes them. One GPU, a slice or a share has no connection to distinguish.
    """
    first = group[0].proposal
    machines = {one.node.labels.get(MACHINE, "") for one in group}
    several = first.is_exclusive and any(one.proposal.units > 1 for one in group)
    if not several or len(machines) == 1 or "" in machines:
        return [group]
    parts = []
    for machine in sorted(machines):
        slug = dns_label(f"{first.slug}-{product_slug(machine)}", limit=SLUG_LIMIT)
        name = class_title(first.name, note=machine.replace("-", " "))
        parts.append(
            [
                replace(
                    one,
                    proposal=replace(
                        one.proposal, slug=slug, name=name, node_labels={**one.proposal.node_labels, MACHINE: machine}
                    ),
                )
                for one in group
                if one.node.labels[MACHINE] == machine
            ]
        )
    return parts


def _merge(group: list[Sighting]) -> _Kind:
    """Sizes are the smallest seen, so that a unit fits on each node; labels are those that all its nodes have."""
    all_of = [one.proposal for one in group]
    memories = [one.memory_mib for one in all_of if one.memory_mib is not None]
    labels = dict(all_of[0].node_labels.items())
    for one in all_of[1:]:
        labels = dict(labels.items() & one.node_labels.items())
    taints = {tuple(sorted(toleration.items())) for one in all_of for toleration in one.tolerations}
    weight, weight_note = _weight(group)
    return _Kind(
        replace(
            all_of[0],
            node_labels=dict(sorted(labels.items())),
            tolerations=tuple(dict(taint) for taint in sorted(taints)),
            memory_mib=min(memories) if len(memories) == len(all_of) else None,
            weight=weight,
            weight_note=weight_note,
            units=sum(one.units for one in all_of),
            nodes=tuple(one.node.name for one in group),
            units_per_workload=max(one.units_per_workload for one in all_of),
            cpu_per_unit=min(one.cpu_per_unit for one in all_of),
            memory_gib_per_unit=min(one.memory_gib_per_unit for one in all_of),
        ),
        tuple(one.node for one in group),
    )


def _weight(group: list[Sighting]) -> tuple[Fraction, str]:
    """Returns the weight by the layout that all nodes have; otherwise that of any layout, and a sentence why."""
    nodes: dict[Fraction, list[NodeFacts]] = {}
    unclear: list[NodeFacts] = []
    for one in group:
        (unclear if one.layout_weight is None else nodes.setdefault(one.layout_weight, [])).append(one.node)
    if unclear:
        reason = f"the layout of {_some(unclear)} is unknown, or differs from GPU to GPU"
    elif len(nodes) == 1:
        return next(iter(nodes)), ""
    else:
        by_layout = "; ".join(f"{weight} on {_some(those)}" for weight, those in nodes.items())
        reason = f"the nodes have different layouts, by which it would be {by_layout}"
    weight = max(one.proposal.weight for one in group)
    return weight, f"Weight {weight} is not computed from the MIG layout: {reason}."


def _named_apart(kinds: list[_Kind]) -> list[_Kind]:
    """Kinds with equal names are distinguished by their properties, not by the order in which they were seen."""
    slugs = [kind.proposal.slug for kind in kinds]

    def named(kind: _Kind) -> _Kind:
        one = kind.proposal
        if slugs.count(one.slug) == 1:
            return kind
        mark = short_hash(repr((_key(one), sorted(one.node_labels.items()))))
        return replace(kind, proposal=replace(one, slug=f"{one.slug[: SLUG_LIMIT - 9]}-{mark}"))

    return [named(kind) for kind in kinds]


def _separated(kind: _Kind, others: list[_Kind]) -> tuple[ClassProposal, str]:
    """Adds labels until no node of another kind with the same resource matches; or returns a sentence why not."""
    one = kind.proposal
    if not one.resource or not others:
        return one, ""
    labels = dict(one.node_labels)
    for name in MORE_LABELS:
        if not (mixed_up := _matching(labels, others)):
            break
        values = {node.labels.get(name, "") for node in kind.nodes}
        if len(values) == 1 and (value := values.pop()) and any(n.labels.get(name) != value for n in mixed_up):
            labels[name] = value
    if not (mixed_up := _matching(labels, others)):
        return replace(one, node_labels=dict(sorted(labels.items()))), ""
    return one, (
        f"{one.name}: {one.units} {one.resource} on {_some(kind.nodes)} cannot be distinguished by labels from those "
        f"of {_some(mixed_up)} with the same name. Add a distinct label to the nodes of each kind."
    )


def _matching(labels: Mapping[str, str], others: list[_Kind]) -> list[NodeFacts]:
    return [node for other in others for node in other.nodes if labels.items() <= node.labels.items()]


def _some(nodes: Iterable[NodeFacts]) -> str:
    names = sorted({node.name for node in nodes})
    return f"{', '.join(names[:3])}{f' and {len(names) - 3} more' if len(names) > 3 else ''}"
