"""Sets of nodes whose MIG layouts are planned together, what is needed of a set, and the runs on its nodes."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta

from django.urls import reverse
from django.utils import timezone

from catalog.classes.capacity.queries import capacities
from catalog.classes.queries import open_classes
from catalog.discovery import mig_profiles
from catalog.mig.layout_names import UNNAMED, layout_name
from catalog.mig.parted import WHOLE, parted_text
from catalog.mig.sets.planning import plan_set, which_hold
from catalog.mig.sets.types import Need, NodePlan, SetNode
from catalog.mig.sets.waves import Wave, waves
from catalog.models import GpuClass
from cluster.models import Cluster, MirrorNode
from cluster.reads import queries as mirror
from cluster.reads.observed import Node
from desk.nodes.mig_plan import SINGLE, PartitionableNode, partitionable
from desk.nodes.mig_sets.types import (
    ClassNeed,
    LeftOut,
    MigSet,
    MovedRun,
    PlannedNode,
    ProfileLine,
    Proposal,
    SetMaintenance,
    broken_classes,
    need_of,
)
from operations.maintenance.affected import on_nodes
from operations.maintenance.steps import Step as MaintenanceStep
from operations.models import MaintenanceNode
from tenants.core.queries import database_now
from tenants.grants.overcommit.queries import promise_steps
from tenants.requests.queries import requested_units
from usage.samples.queries import PERIOD, busy_units
from workloads.forecast.queries import waiting_units

# Each maintenance is proposed after the one before.
WINDOW = timedelta(hours=2)
FIRST_AFTER = timedelta(hours=24)
GPU, LAYOUT = "nvidia.com/gpu", "nvidia.com/mig.config"
_SHARING = re.compile(r"nvidia\.com/(gpu|mig-.+)\.sharing-strategy")
# Labels that follow from the layout of a node or its product: they do not tell nodes of a set apart. The name of the
# layout does: a class that chooses it loses each node that changes.
_OF_LAYOUT = re.compile(
    r"nvidia\.com/(mig(?!\.config$).*|gpu\.(product|memory|count|replicas|sharing-strategy|multiprocessors|slices\..+|engines\..+))"
)


def mig_sets(cluster: Cluster) -> tuple[MigSet, ...]:
    """By product. Two queries. A node of a product that is unknown or has no MIG is in none."""
    busy = set(
        MaintenanceNode.objects.filter(cluster=cluster)
        .exclude(step=MaintenanceStep.DONE)
        .values_list("name", flat=True)
    )
    found: dict[str, list[tuple[Node, PartitionableNode]]] = {}
    for row in MirrorNode.objects.filter(cluster_id=cluster.pk).order_by("name"):
        node = mirror.node_of(row)
        kind = partitionable(node)
        if not isinstance(kind, str):
            found.setdefault(_key(kind), []).append((node, kind))
    return tuple(_set(key, found[key], busy) for key in sorted(found))


def demand_of(cluster: Cluster, one: MigSet, names: Collection[str]) -> tuple[ProfileLine, ...]:
    """What is needed of these nodes of the set, in order of size. About 14 queries, whatever the number of classes,
    teams and runs.
    """
    names = frozenset(names)
    nodes = [node for node in one.nodes if node.name in names]
    profiles = {gpu_class: profile for gpu_class in open_classes(cluster) if (profile := _profile_of(gpu_class, one))}
    classes = [known for known in profiles if any(_may_use(known, node) for node in nodes)]
    pks = [known.pk for known in classes]
    now = database_now()
    granted = promise_steps(pks, at=now)
    requested = requested_units(pks, at=now)
    used = busy_units(cluster, pks, since=timezone.now() - PERIOD)
    queued = waiting_units(cluster)
    seen = capacities(cluster, classes, with_nodes=True)
    needs: dict[str, list[ClassNeed]] = {}
    for known in classes:
        on = frozenset(node.name for node in nodes if _may_use(known, node))
        needs.setdefault(profiles[known], []).append(
            ClassNeed(
                slug=known.slug,
                name=known.name,
                profile=profiles[known],
                on=on,
                is_of_layout=LAYOUT in known.node_labels,
                elsewhere=sum(node.allocatable for node in seen[known.pk].nodes if node.name not in names),
                granted=max(step.units for step in granted[known.pk]),
                requested=requested.get(known.pk, 0),
                queued=None if queued is None else queued.get(known.slug, 0),
                used=None if used is None else used.get(known.pk, 0),
            )
        )
    return tuple(
        ProfileLine(profile, sum(node.offers.get(profile, 0) for node in nodes), tuple(needs.get(profile, ())))
        for profile in one.ordered_profiles
    )


def proposal(
    cluster: Cluster,
    one: MigSet,
    names: Collection[str],
    lines: Sequence[ProfileLine],
    wanted: Mapping[str, int],
    *,
    keeps_grants: bool = True,
) -> Proposal:
    """The plan for these nodes, what it breaks and its maintenances. Three queries, whatever the number of runs.

    `keeps_grants` False: only what is wanted counts, and what is granted of it can be lost.
    """
    names = frozenset(names)
    found = on_nodes(cluster.pk, names)
    nodes = [
        SetNode(node.name, node.gpus, node.offers, frozenset(run.pk for run in found.runs[node.name]))
        for node in one.nodes
        if node.name in names
    ]
    need = need_of(lines, wanted)
    searched = need if keeps_grants else Need(need.wanted, {})
    plan = plan_set(one.card, one.profiles, nodes, searched, is_single=one.is_single)
    changed = {node.node.name for node in plan.changed}
    moved = plan.runs
    places: dict[int, list[str]] = {}
    for name in sorted(found.runs):
        for run in found.runs[name]:
            places.setdefault(run.pk, []).append(name)
    runs = (
        MovedRun(
            team=run.workload.tenant.name,
            team_slug=run.workload.tenant.slug,
            name=run.workload.name,
            href=reverse("workload", args=[run.workload.tenant.slug, run.workload.name]),
            person=run.requested_by.name,
            ends_at=run.ends_at,
            nodes=tuple(places[run.pk]),
        )
        for run in found.all_runs
        if run.pk in moved
    )
    return Proposal(
        plan=plan,
        broken=broken_classes(lines, plan.nodes),
        runs=tuple(sorted(runs, key=lambda run: (run.team, run.name))),
        others=tuple(pod for name in sorted(changed) for pod in found.others[name]),
        steps=_steps(one, waves(plan, need)),
        is_known=mirror.as_of(cluster.pk, "Node", "Pod").is_current,
    )


def _key(kind: PartitionableNode) -> str:
    gpus = f":{kind.gpus}" if kind.strategy == SINGLE else ""
    return f"{kind.product}:{kind.card.sizes[0]:g}:{kind.strategy}{gpus}"


def _set(key: str, found: Sequence[tuple[Node, PartitionableNode]], busy: Collection[str]) -> MigSet:
    first = found[0][1]
    nodes, left_out = [], []
    is_single = first.strategy == SINGLE
    held = [(_offers(node, kind), kind.gpus) for node, kind in found]
    # Many nodes have the same layout.
    distinct = {_held_key(offers, gpus): (offers, gpus) for offers, gpus in held}
    known = which_hold(first.card, first.profiles, list(distinct.values()), is_single=is_single)
    possible = dict(zip(distinct, known, strict=True))
    for (node, kind), (offers, gpus) in zip(found, held, strict=True):
        is_possible = possible[_held_key(offers, gpus)] if sum(offers.values()) > 0 else False
        if reason := _reason(node, is_busy=node.name in busy, is_possible=is_possible):
            left_out.append(LeftOut(node.name, reason))
        else:
            labels = {name: value for name, value in node.labels.items() if not _OF_LAYOUT.fullmatch(name)}
            nodes.append(PlannedNode(node.name, kind.gpus, offers, labels))
    return MigSet(key, first.product, first.card, first.profiles, is_single, tuple(nodes), tuple(left_out))


def _held_key(offers: Mapping[str, int], gpus: int) -> tuple[int, frozenset[tuple[str, int]]]:
    return gpus, frozenset(offers.items())


def _offers(node: Node, kind: PartitionableNode) -> dict[str, int]:
    if kind.strategy == SINGLE:
        return dict(kind.current) or {WHOLE: kind.gpus}
    whole = node.capacity.get(GPU, 0)
    return dict(kind.current) | ({WHOLE: whole} if whole else {})


def _reason(node: Node, *, is_busy: bool, is_possible: bool | None) -> str:
    """Why the node is left out; "" if it is not. `is_possible` None: unknown."""
    if is_busy:
        return "It is in a maintenance, or one is planned."
    if not node.ready:
        return "It is not ready."
    if not node.schedulable:
        return "It is cordoned."
    if node.labels.get("nvidia.com/mig.config.state", "success") != "success":
        return "The MIG manager has not applied its layout."
    if any(value != "none" for name, value in node.labels.items() if _SHARING.fullmatch(name)):
        return "Its units are shared: plan its layout on its own page."
    if not any(number for name, number in node.capacity.items() if name.startswith("nvidia.com/")):
        return "NVIDIA's device plugin does not offer its GPUs."
    if is_possible is None:
        return "Whether its GPUs can have what its labels say is unknown: too many nodes have layouts of their own."
    return "" if is_possible else "What its labels say is not possible on its GPUs, so its layout is unknown."


def _profile_of(gpu_class: GpuClass, one: MigSet) -> str:
    """What one unit of the class is on nodes of the set; "" if they cannot have it."""
    product, _mig, _profile = gpu_class.product.removesuffix("-SHARED").partition("-MIG-")
    is_plain = gpu_class.interface == GpuClass.Interface.DEVICE_PLUGIN and gpu_class.sharing == GpuClass.Sharing.NONE
    if product != one.product or not is_plain:
        return ""
    if gpu_class.partition == "none":
        return WHOLE if gpu_class.resource == GPU else ""
    profile = mig_profiles.from_resource(gpu_class.partition)
    resource = GPU if one.is_single else f"nvidia.com/mig-{mig_profiles.as_resource(profile)}"
    return profile if profile in one.profiles and gpu_class.resource == resource else ""


def _may_use(gpu_class: GpuClass, node: PlannedNode) -> bool:
    """Whether the class can choose the node, whatever its layout."""
    asked = {name: value for name, value in gpu_class.node_labels.items() if not _OF_LAYOUT.fullmatch(name)}
    return asked.items() <= node.selectable.items()


def _steps(one: MigSet, found: Sequence[Wave]) -> tuple[SetMaintenance, ...]:
    first = (timezone.now() + FIRST_AFTER).replace(second=0, microsecond=0)
    return tuple(_step(one, wave, number, first + WINDOW * number) for number, wave in enumerate(found))


def _step(one: MigSet, wave: Wave, number: int, starts_at: datetime) -> SetMaintenance:
    node = wave.nodes[0]
    name = layout_name(node.groups)
    is_named = name != UNNAMED
    config = name if is_named else f"{UNNAMED}-{number + 1}"
    return SetMaintenance(
        nodes=tuple(each.node.name for each in wave.nodes),
        groups=node.groups,
        config=config,
        is_named=is_named,
        devices=_devices(node, is_single=one.is_single),
        parted=parted_text(config, node.groups),
        short=wave.short,
        starts_at=starts_at,
        ends_at=starts_at + WINDOW,
    )


def _devices(node: NodePlan, *, is_single: bool) -> dict[str, int]:
    if is_single:
        return {GPU: sum(node.offers.values())}
    return {
        GPU if name == WHOLE else f"nvidia.com/mig-{mig_profiles.as_resource(name)}": number
        for name, number in sorted(node.offers.items())
        if number
    }
