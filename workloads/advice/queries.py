"""Reads the facts behind suggested actions for all queued or stuck workloads of a namespace at once."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from django.db.models import Sum
from django.db.models.fields.json import KT
from django.utils import timezone

from accounts.core.actor import Actor
from catalog.classes import life_cycle
from catalog.classes import queries as catalog
from catalog.classes.capacity import queries as capacity_queries
from catalog.classes.capacity import weights
from catalog.classes.capacity.device_memory import memory_sizes
from catalog.classes.capacity.types import Capacity
from catalog.images import compatibility
from catalog.images import queries as image_queries
from catalog.models import GpuClass, Image
from cluster.models import MirrorPod
from cluster.reads import queries as mirror
from cluster.reads.observed import Pod
from portal.core.due import owner_label
from tenants.grants.queries import units_in_force
from tenants.members import policy as member_policy
from tenants.models import Namespace
from tenants.requests import policy as tenants_policy
from workloads.advice.advice import NEVER, Advice, advice
from workloads.advice.class_context import ClassContext
from workloads.advice.facts import AdviceFacts, ClassOption, OtherRun
from workloads.advice.remedies import needs_class_facts, remedies_for
from workloads.core import policy, queries, workload_sql
from workloads.core.class_nodes import ClassNodes
from workloads.core.policy import ClassFacts, TeamFacts
from workloads.core.queries import job_name, run_facts, watch_of
from workloads.core.unit_sql import rank, total_units
from workloads.forecast.availability import AvailabilityFigures
from workloads.forecast.queries import limits_of, unit_size
from workloads.forecast.team_limits import TeamLimits
from workloads.launch import options
from workloads.launch import policy as launch_policy
from workloads.launch.options import Options
from workloads.launch.queries import accepted_terms, reachable_classes
from workloads.models import Run, Workload
from workloads.status import queries as status_queries
from workloads.status.observations.node_capacity import PodDemand, nodes_of, requiring_level
from workloads.status.types import Phase, Status
from workloads.status.workload_row import WorkloadRow


@dataclass(frozen=True)
class _Read:
    """Facts that are read once for all workloads."""

    by: Actor
    team: TeamFacts
    classes: tuple[tuple[GpuClass, ClassFacts], ...]
    capacities: Mapping[int, Capacity]
    granted: Mapping[int, int]
    runs: tuple[Run, ...]
    pods: tuple[Pod, ...]
    ending: Mapping[tuple[str, str], int]
    idle: Mapping[str, int]
    known_images: Mapping[tuple[str, str], Image]
    hardware: Mapping[int, compatibility.HardwareFacts]
    signed: Collection[int]
    limits: TeamLimits
    # By class id: what is free on its nodes, including cores and memory.
    nodes: Mapping[int, ClassNodes]
    # By run id, for runs that require a level of a topology.
    levels: Mapping[int, ClassNodes]


def advice_by_workload(
    by: Actor, namespace: Namespace, team: TeamFacts, rows: Iterable[WorkloadRow]
) -> dict[str, Advice]:
    """Returns advice by name of the workload; workloads that need no action are omitted. No query if the statuses are
    enough. Otherwise 13, whatever the number of workloads and classes, and a few more for a class of claimed devices or
    with terms.
    """
    stuck = [row for row in rows if remedies_for(row.status)]
    if not stuck:
        return {}
    by_class = [row for row in stuck if needs_class_facts(row.status)]
    read = _read(by, namespace, team, by_class) if by_class else None
    found = {}
    for row in stuck:
        facts = _plain(by, team, row)
        if read is not None and row in by_class:
            facts = _facts(read, row, facts)
        if (one := advice(row.status, facts)) is not None:
            found[row.workload.name] = one
    return found


def advice_for_rows(by: Actor, rows: Sequence[WorkloadRow]) -> dict[str, Advice]:
    """As `advice_by_workload`, for rows of one team that the actor may see; one more query for the actor's role."""
    if not any(remedies_for(row.status) for row in rows):
        return {}
    namespace, team = queries.team(by, rows[0].workload.tenant.slug)
    return advice_by_workload(by, namespace, team, rows)


def never_starts(by: Actor, tenant: str, name: str) -> bool:
    """Returns whether the last run has not started and never will with this configuration."""
    found = workload_sql.with_related(queries.visible_workloads(by, tenant)).filter(name=name).first()
    waits = Run.objects.filter(workload=found, started_at=None, ended_at=None)
    if found is None or not waits.exists():
        return False
    rows = status_queries.workload_rows([found])
    return verdict_of(rows[0].status, advice_for_rows(by, rows).get(name)) == NEVER


def verdict_of(told: Status, found: Advice | None) -> str:
    """Without advice, because this user can do nothing about the wait, only the cluster's own message decides."""
    if found is not None:
        return found.verdict
    is_final = told.explained is not None and told.explained.is_final
    return NEVER if is_final and told.phase is Phase.BLOCKED else ""


def _read(by: Actor, namespace: Namespace, team: TeamFacts, rows: Collection[WorkloadRow]) -> _Read:
    classes = tuple(reachable_classes(namespace))
    open_ones = [one for one, _facts in classes]
    cluster = namespace.cluster
    alive = Run.objects.filter(workload__namespace=namespace, ended_at=None).order_by("requested_at", "pk")
    wanted = {row.workload.image.partition("@")[0] for row in rows}
    return _Read(
        by=by,
        team=team,
        classes=classes,
        capacities=capacity_queries.capacities(cluster, open_ones, with_nodes=True),
        granted=units_in_force(namespace.tenant_id, timezone.now()),
        runs=tuple(alive.select_related("workload", "requested_by", "watch")),
        pods=tuple(mirror.pods(cluster.pk, namespace=namespace.name)),
        ending=_ending(cluster.pk, open_ones),
        idle=_idle(cluster.pk),
        known_images={(one.kind, one.reference): one for one in Image.objects.filter(reference__in=wanted)},
        hardware=image_queries.hardware_facts(cluster, open_ones),
        signed=accepted_terms(by, open_ones),
        limits=limits_of(namespace),
        nodes=nodes_of(
            cluster.pk, {one.pk: place for one in open_ones if (place := PodDemand.of_class(one)) is not None}
        ),
        levels=nodes_of(cluster.pk, requiring_level(row.run for row in rows if row.run)),
    )


def _ending(cluster_id: int, classes: Iterable[GpuClass]) -> dict[tuple[str, str], int]:
    """Returns by class and node the units of terminating pods of all teams. One query."""
    by_slug = {one.slug: one for one in classes}
    rows = MirrorPod.objects.filter(cluster_id=cluster_id, gpu_class__in=list(by_slug), deleting_since__isnull=False)
    rows = rows.exclude(node="").exclude(phase__in=("Succeeded", "Failed"))
    found: dict[tuple[str, str], int] = {}
    for slug, node, asked in rows.values_list("gpu_class", "node", "record__requests"):
        found[slug, node] = found.get((slug, node), 0) + _units(by_slug[slug], asked)
    return found


def _units(gpu_class: GpuClass, requests: Mapping[str, int]) -> int:
    if gpu_class.interface == GpuClass.Interface.NONE:
        return requests.get("cpu", 0) // (gpu_class.cpu_per_unit * 1000)
    return requests.get(gpu_class.resource, 0) if gpu_class.resource else 0


def _idle(cluster_id: int) -> dict[str, int]:
    """Returns by class slug the units of idle notebooks of all teams, from their watches. One query."""
    rows = Run.objects.filter(ended_at=None, stop_requested_at=None, watch__idle_since__isnull=False)
    rows = rows.filter(workload__namespace__cluster_id=cluster_id).order_by()
    summed = rows.values(slug=KT("spec__gpu_class")).annotate(units=Sum(total_units()))
    return {row["slug"]: row["units"] for row in summed}


# ---- facts for one run -----------------------------------------------------------------------------------------------


def _plain(by: Actor, team: TeamFacts, row: WorkloadRow) -> AdviceFacts:
    """Facts that come only from the row and the user."""
    run = run_facts(row.workload, row.run)
    standing = member_policy.Standing(role=team.role, wanted=team.namespace_wanted)
    return AdviceFacts(
        name=row.workload.name,
        kind=row.workload.kind,
        each=row.run.spec["units"] if row.run else row.workload.units,
        own=None,
        shared_memory_gib=row.run.spec.get("shared_memory_gib", 0) if row.run else 0,
        workers=row.run.workers if row.run else row.workload.workers,
        may_change=(policy.may_delete(by, team, run) or policy.may_launch_in(by, team)) is None,
        may_request=tenants_policy.may_file(by, standing) is None,
    )


def _facts(read: _Read, row: WorkloadRow, plain: AdviceFacts) -> AdviceFacts:
    workload, slug, units = row.workload, row.gpu_class.slug, plain.each
    known = {one.slug: (one, facts) for one, facts in read.classes}
    own = _option(read, workload, *known[slug], units=units, of=row.gpu_class) if slug in known else None
    placed = read.levels.get(row.run.pk) if row.run is not None else None
    anywhere = own.figures if own is not None and placed is not None else None
    if placed is not None and slug in known:
        best = {node.name for node in placed.best_domain}
        own = _option(read, workload, *known[slug], units=units, of=row.gpu_class, on=best)
    said = Options.from_json(workload.options)
    capacity = _with_memory(row.gpu_class, read.capacities.get(row.gpu_class.pk) or Capacity(), said)
    nodes = {one.name: one.free for one in capacity.nodes}
    ending = [held for (of, node), held in read.ending.items() if of == slug and node in nodes]
    return dataclasses.replace(
        plain,
        own=own,
        # Another class may lack the level.
        options=tuple(
            _option(read, workload, one, theirs, units=units, of=row.gpu_class)
            for one, theirs in read.classes
            if placed is None and one.slug != slug and _has_devices(one) == _has_devices(row.gpu_class)
        ),
        # Which devices the others would free is not read, nor in which domain.
        others=() if said.gpu_memory_gib or placed is not None else tuple(_others(read, row, nodes)),
        ahead=_ahead(read, row, own),
        free_on=nodes,
        ending=max(ending, default=0),
        gpu_memory_mib=row.gpu_class.memory_mib or 0,
        around=_around(read, row.gpu_class, capacity),
        level=placed.level if placed is not None else "",
        anywhere=anywhere,
    )


def _option(
    read: _Read,
    workload: Workload,
    one: GpuClass,
    facts: ClassFacts,
    *,
    units: int,
    of: GpuClass,
    on: Collection[str] | None = None,
) -> ClassOption:
    """For a new run of this workload, after its current run has ended. `on`: the names of the only nodes for it."""
    said, now, of_unit = Options.from_json(workload.options), timezone.now(), unit_size(one)
    sizes = memory_sizes(one, read.capacities[one.pk])
    capacity = _with_memory(one, read.capacities[one.pk], said)
    room = _room(read, one, capacity, said, on)
    ending = [run for run in _of(read, one.slug) if run.workload_id == workload.pk and run.holds_units]
    freed, freed_workers = sum(_size(run) for run in ending), sum(run.workers for run in ending)
    figures = AvailabilityFigures(
        unit=catalog.unit_of(one),
        granted=read.granted.get(one.pk, 0),
        used=sum(_size(run) for run in _of(read, one.slug, workload) if run.holds_units),
        borrowing_limit=one.borrowing_limit,
        on_one_node=None if capacity.most_on_one_node is None else max(room, default=0),
        free_on=room,
        memory_gib=said.gpu_memory_gib if sizes else None,
        held=life_cycle.hold_sentence(one, now=now),
        leaving=catalog.retirement_notice(one),
        waiting=tuple(_size(run) for run in _in_order(_of(read, one.slug, workload)) if not run.holds_units),
        foreign=read.limits.foreign_units(of_unit, sum(_size(run) for run in _of(read, one.slug) if run.holds_units)),
        closed=read.limits.closed,
        rooms=read.limits.rooms(of_unit, freed=freed, freed_workers=freed_workers),
    )
    largest = capacity.largest_node
    of_node = dataclasses.replace(facts, node_units=largest, memory_sizes=sizes)
    if one == of:
        said = dataclasses.replace(said, workers=None)
    has_volume = workload.volume_id is not None

    def is_startable(count: int) -> bool:
        return launch_policy.may_start_on(of_node, workload.kind, count, said) is None

    def fits(count: int) -> bool:
        bounds = launch_policy.option_bounds(facts, count)
        return options.options_refusal(said, bounds, has_volume=has_volume) is None

    takes_image = one == of or _runs_image(read, workload, one, of)
    takes_units = next((count for count in range(units, 0, -1) if is_startable(count) and fits(count)), 0)
    return ClassOption(
        slug=one.slug,
        name=one.name,
        figures=figures,
        takes=is_startable(1),
        takes_fewer=is_startable(1) and fits(1),
        takes_units=takes_units if takes_image else 0,
        most_units=one.units_per_workload if largest is None else min(one.units_per_workload, largest),
        allocatable=capacity.obtainable(one),
        is_smaller=weights.exact_weight(one.weight, one.replicas) < weights.exact_weight(of.weight, of.replicas),
        asks_terms=bool(one.terms_version) and one.pk not in read.signed,
        cpu=one.cpu_per_unit,
        memory_gib=one.memory_gib_per_unit,
        gpu_memory_mib=one.memory_mib or 0,
        is_less_isolated=of.sharing == GpuClass.Sharing.NONE != one.sharing,
    )


def _with_memory(one: GpuClass, found: Capacity, said: Options) -> Capacity:
    """Only the devices with the requested memory."""
    gib = said.gpu_memory_gib
    return capacity_queries.of_memory(found, one, gib) if gib and memory_sizes(one, found) else found


def _has_devices(one: GpuClass) -> bool:
    return one.interface != GpuClass.Interface.NONE


def _room(read: _Read, one: GpuClass, capacity: Capacity, said: Options, on: Collection[str] | None) -> tuple[int, ...]:
    """Returns for each node the free units for which cores and memory are free too."""
    left = {node.name: node for node in read.nodes[one.pk].nodes} if one.pk in read.nodes else {}
    found = []
    for node in capacity.nodes:
        units = node.free if on is None or node.name in on else 0
        if (there := left.get(node.name)) is not None:
            for free, asked, per_unit in (
                (there.cpu_free, said.cpu, one.cpu_per_unit),
                (there.memory_free_gib, said.memory_gib, one.memory_gib_per_unit),
            ):
                units = min(units, int(max(0, free) // per_unit)) if asked is None else units * (free >= asked)
        found.append(units)
    return tuple(found)


def _runs_image(read: _Read, workload: Workload, one: GpuClass, of: GpuClass) -> bool:
    """An image that is not in the catalog is assumed to run on GPUs of the same vendor."""
    image = read.known_images.get((workload.kind, workload.image.partition("@")[0]))
    if image is None:
        return one.vendor == of.vendor
    return not compatibility.compatibility(image, read.hardware[one.pk])


def _size(run: Run) -> int:
    return run.total_units


def _of(read: _Read, slug: str, without: Workload | None = None) -> list[Run]:
    return [
        run for run in read.runs if run.spec["gpu_class"] == slug and (not without or run.workload_id != without.pk)
    ]


def _in_order(runs: Iterable[Run]) -> list[Run]:
    """Sorts the runs in Kueue's order: by priority, then by time."""
    return sorted(runs, key=rank)


def _ahead(read: _Read, row: WorkloadRow, own: ClassOption | None) -> tuple[int, ...]:
    """Returns the units of each run ahead that can be admitted at all."""
    if own is None or row.run is None:
        return ()
    most = own.figures.granted + own.figures.borrowing_limit
    here = (rank(row.run), row.run.requested_at)
    return tuple(
        _size(run)
        for run in _in_order(_of(read, own.slug, row.workload))
        if not run.holds_units
        and not run.stop_requested_at
        and run.spec["units"] <= own.most_units
        and _size(run) <= most
        and (rank(run), run.requested_at) < here
    )


def _others(read: _Read, row: WorkloadRow, nodes: Collection[str]) -> Iterable[OtherRun]:
    """Returns the team's runs on nodes that accept new pods: units freed elsewhere do not help."""
    at: dict[tuple[str, str], list[Pod]] = {}
    for pod in read.pods:
        if pod.node in nodes and not pod.is_over:
            at.setdefault((pod.owner, pod.run), []).append(pod)
    for run in _of(read, row.gpu_class.slug, row.workload):
        pods = at.get((owner_label(run.workload), job_name(run.workload, run)), [])
        if not pods or any(pod.deleting_since for pod in pods) or run.stop_requested_at is not None:
            continue
        watch = watch_of(run)
        held = Counter(pod.node for pod in pods)
        yield OtherRun(
            name=run.workload.name,
            who=run.requested_by.name,
            on={node: count * run.spec["units"] for node, count in held.items()},
            since=run.started_at or run.requested_at,
            may_stop=policy.may_stop(read.by, read.team, run_facts(run.workload, run)) is None,
            idle_since=watch.idle_since if watch else None,
        )


def _around(read: _Read, gpu_class: GpuClass, capacity: Capacity) -> ClassContext:
    """Pods without the portal's label and without a class belong to the class whose nodes they are on."""
    nodes = {one.name for one in capacity.nodes}
    outside = [pod for pod in read.pods if not pod.owner and pod.node in nodes and not pod.is_over]
    has_resource = gpu_class.interface == GpuClass.Interface.DEVICE_PLUGIN
    return ClassContext(
        name=gpu_class.name,
        unit=catalog.unit_of(gpu_class),
        allocatable=capacity.allocatable or (None if gpu_class.is_autoscaled else capacity.allocatable),
        unhealthy=capacity.unhealthy,
        cordoned=capacity.cordoned,
        idle=read.idle.get(gpu_class.slug, 0),
        outside=sum(_units(gpu_class, pod.requests) for pod in outside) if has_resource else 0,
    )
