"""A MIG layout for one node, planned for what is in use on it and what is queued. Reads only; see catalog.mig."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from catalog.classes.queries import open_classes
from catalog.discovery import mig_profiles, vendors
from catalog.mig.planning import MigPlan, mixed_plan, single_plan
from catalog.mig.profile_names import profile_names
from cluster.models import Cluster
from cluster.reads.observed import Node
from desk.nodes.allocations import DeviceLine
from workloads.forecast.queries import waiting_units

SINGLE, MIXED = "single", "mixed"
# A product's label and its memory as reported differ: the driver keeps a part of it.
_MEMORY_TOLERANCE = 0.08


@dataclass(frozen=True)
class PartitionableNode:
    """`gpus`: physical ones. `strategy`: of its device plugin. `profiles`: those that its GPUs can have."""

    product: str
    card: mig_profiles.MigCard
    profiles: Mapping[str, mig_profiles.MigProfile]
    gpus: int
    strategy: str
    # Instances now, by profile.
    current: Mapping[str, int]


@dataclass(frozen=True)
class ProfileDemand:
    """Instances of one profile. `used`: by pods on this node, None if pods share instances: it is not known how many.
    `queued`: of runs in the queue, None if unknown.
    """

    profile: str
    current: int
    used: int | None
    queued: int | None

    @property
    def proposed(self) -> int:
        """All instances of which an unknown number is used are kept."""
        return (self.current if self.used is None else self.used) + (self.queued or 0)


def partitionable(node: Node) -> PartitionableNode | str:
    """Returns a sentence why no layout can be planned, if that is so."""
    label = node.labels.get("nvidia.com/gpu.product", "").removesuffix("-SHARED")
    if not label:
        return "The labels of this node name no NVIDIA GPU, so its MIG layouts are unknown."
    product, single, profile = label.partition("-MIG-")
    card = mig_profiles.card_of(product)
    if card is None:
        has_none = mig_profiles.has_mig(product) is False
        return f"{product} has no MIG." if has_none else f"The MIG layouts of {product} are unknown."
    count, memory_mib = (_number(node, f"nvidia.com/gpu.{name}") for name in ("count", "memory"))
    card = card if single else _of_memory(card, memory_mib)
    names = profile_names(card) if len(card.sizes) == 1 else None
    if names is None:
        return f"The names of the MIG profiles of {product} are unknown for the memory that this node reports."
    if single:
        shape = mig_profiles.profile_of(profile, card)
        current = {mig_profiles.from_resource(profile): count} if shape is not None else {}
        gpus = -(-count // shape.most) if shape is not None else 0
    else:
        current = {mig_profiles.from_resource(name): number for name, number in vendors.mig_counts(node.labels).items()}
        gpus = count
    if not gpus:
        return "The labels of this node do not say how many GPUs it has."
    strategy = SINGLE if node.labels.get("nvidia.com/mig.strategy") == SINGLE else MIXED
    return PartitionableNode(product, card, names, gpus, strategy, current)


def demand_on(
    cluster: Cluster, node: PartitionableNode, labels: Mapping[str, str], devices: Sequence[DeviceLine]
) -> tuple[ProfileDemand, ...]:
    """One line for each profile of the GPU, in order of size. Three queries, whatever the number of runs and classes.
    `labels`, `devices`: of the node.

    Queued are units of all open classes of this product and profile, whichever node serves them.
    """
    used = _used(node, labels, devices)
    waiting = waiting_units(cluster)
    queued: Counter[str] = Counter()
    for one in open_classes(cluster):
        if one.sharing == one.Sharing.NONE and _same_gpu(one.product, node):
            queued[mig_profiles.from_resource(one.partition)] += (waiting or {}).get(one.slug, 0)
    return tuple(
        ProfileDemand(name, node.current.get(name, 0), used.get(name, 0), None if waiting is None else queued[name])
        for name in sorted(node.profiles, key=lambda one: (node.profiles[one].memory, node.profiles[one].compute, one))
    )


def plan_for(node: PartitionableNode, demand: Mapping[str, int], strategy: str) -> MigPlan:
    plan = single_plan if strategy == SINGLE else mixed_plan
    return plan(node.card, node.profiles, demand, node.gpus)


def served_now(node: PartitionableNode, demand: Mapping[str, int]) -> int:
    """Instances of the demand that the present layout serves."""
    return sum(min(number, node.current.get(name, 0)) for name, number in demand.items())


def changes(node: PartitionableNode, plan: MigPlan) -> list[tuple[str, int, int]]:
    """(profile, instances now, instances then) of profiles whose number changes. Empty if the plan leaves GPUs as they
    are: which instances these have is unknown.
    """
    if not plan.layouts or sum(number for _layout, number in plan.layouts) < node.gpus:
        return []
    then = Counter(plan.served) + Counter(plan.spare)
    names = (*node.profiles, *(name for name in node.current if name not in node.profiles))
    pairs = ((name, node.current.get(name, 0), then[name]) for name in names)
    return [(name, now, later) for name, now, later in pairs if now != later]


def devices_after(node: PartitionableNode, plan: MigPlan, strategy: str) -> dict[str, int]:
    """What the node offers with the plan; empty if the plan leaves GPUs as they are."""
    if not plan.layouts or sum(number for _layout, number in plan.layouts) < node.gpus:
        return {}
    then = Counter(plan.served) + Counter(plan.spare)
    if strategy == SINGLE:
        return {"nvidia.com/gpu": then.total()}
    return {f"nvidia.com/mig-{mig_profiles.as_resource(name)}": number for name, number in sorted(then.items())}


def commands(node: str, config: str) -> str:
    """What an operator runs to apply a layout: NVIDIA's MIG manager does not drain."""
    return "\n".join(
        (
            f"kubectl cordon {node}",
            f"kubectl drain {node} --ignore-daemonsets --delete-emptydir-data",
            f"kubectl label node {node} nvidia.com/mig.config={config} --overwrite",
            f"kubectl get node {node} -L nvidia.com/mig.config.state --watch",
            f"kubectl uncordon {node}",
        )
    )


def _used(node: PartitionableNode, labels: Mapping[str, str], devices: Sequence[DeviceLine]) -> dict[str, int | None]:
    by_resource = {line.resource: line.used for line in devices}
    is_single = node.strategy == SINGLE and len(node.current) == 1
    found: dict[str, int | None] = {}
    for name in node.current if is_single else node.profiles:
        about = "gpu" if is_single else f"mig-{mig_profiles.as_resource(name)}"
        # Shares of an instance have its name, or one of their own.
        used = sum(by_resource.get(f"nvidia.com/{about}{suffix}", 0) for suffix in ("", ".shared"))
        is_shared = labels.get(f"nvidia.com/{about}.sharing-strategy", "none") != "none"
        found[name] = None if is_shared and used else used
    return found


def _same_gpu(product: str, node: PartitionableNode) -> bool:
    return product.removesuffix("-SHARED").partition("-MIG-")[0] == node.product


def _of_memory(card: mig_profiles.MigCard, memory_mib: int) -> mig_profiles.MigCard:
    near = [size for size in card.sizes if memory_mib and abs(memory_mib / 1024 / size - 1) <= _MEMORY_TOLERANCE]
    nearest = sorted(near, key=lambda size: abs(memory_mib / 1024 - size))[:1]
    return replace(card, sizes=tuple(nearest)) if nearest else card


def _number(node: Node, label: str) -> int:
    text = node.labels.get(label, "")
    return int(text) if text.isdigit() else 0
