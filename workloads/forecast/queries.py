"""Reads the current outlook for a launch of a given size on each class, with the figures behind the sentences; the
accuracy of start estimates; and the running and queued units of a team and a cluster.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from django.db import connection
from django.db.models import OuterRef, Subquery, Sum
from django.db.models.fields.json import KT
from django.utils import timezone

from catalog.classes import life_cycle
from catalog.classes import queries as catalog
from catalog.classes.capacity import queries as capacity_queries
from catalog.classes.capacity import weights
from catalog.classes.capacity.device_memory import memory_sizes
from catalog.models import GpuClass
from cluster.manifests.run_spec import DEFAULT_PRIORITY, JOB, PRIORITIES
from cluster.models import Cluster, MirrorJob, MirrorNode, MirrorWorkload
from cluster.reads import queries as mirror
from cluster.reads import queries as read_queries
from portal.ui.text import plural
from tenants.grants.queries import units_in_force
from tenants.models import Namespace
from workloads.core import policy
from workloads.core.unit_sql import HOLDS, HOLDS_UNITS, RANK, TOTAL_UNITS, WORKERS, total_units
from workloads.forecast.availability import BAD, AvailabilityFigures, Outlook, availability_sentence, cost
from workloads.forecast.team_limits import TeamLimits, UnitSize, team_limits
from workloads.interruption.exposure import QuotaPosition, Standing, exposure, position_at_launch
from workloads.models import Run, StartPrediction, Workload
from workloads.status.estimates.estimate import RECENT

# A workload has at most one unfinished run. The Kueue Workload has no owner label, but its Job has one.
_WAITING = f"""
SELECT run.spec ->> 'gpu_class', sum({TOTAL_UNITS})
  FROM {MirrorWorkload._meta.db_table} queued
  JOIN {MirrorJob._meta.db_table} job ON job.cluster_id = queued.cluster_id AND job.uid = queued.job_uid
  JOIN {Workload._meta.db_table} workload ON job.owner = 'workloads.workload.' || workload.id
  JOIN {Run._meta.db_table} run ON run.workload_id = workload.id AND run.ended_at IS NULL
 WHERE queued.cluster_id = %s AND (queued.record ->> 'active')::boolean
   AND NOT queued.record -> 'conditions' @> '[{{"type": "QuotaReserved", "status": "True"}}]'
   AND NOT queued.record -> 'conditions' @> '[{{"type": "Finished", "status": "True"}}]'
 GROUP BY 1"""

_RUNS = f"""
SELECT slug,
       coalesce(sum(units) FILTER (WHERE holds AND NOT leaves), 0)::bigint,
       coalesce(array_agg(units ORDER BY rank, requested_at) FILTER (WHERE NOT holds AND NOT leaves), '{{}}'),
       count(*) FILTER (WHERE NOT holds AND NOT leaves AND rank <= %(rank)s),
       coalesce(sum(units) FILTER (WHERE holds AND leaves), 0)::bigint,
       coalesce(sum(workers) FILTER (WHERE holds AND leaves), 0)::bigint
  FROM (SELECT run.spec ->> 'gpu_class' AS slug, run.requested_at, run.workload_id = %(instead_of)s AS leaves,
               {TOTAL_UNITS} AS units, {WORKERS} AS workers, {HOLDS_UNITS} AS holds, {RANK} AS rank
          FROM {Run._meta.db_table} run
          JOIN {Workload._meta.db_table} workload ON workload.id = run.workload_id
         WHERE workload.namespace_id = %(namespace)s AND run.ended_at IS NULL) run
 GROUP BY slug"""


@dataclass(frozen=True)
class LaunchSize:
    """The requested size: `units` of any class per worker, for `hours` (None: not set) and for this kind of workload.
    `priority`: "" for the kind's default. `instead_of`: id of a workload whose current run ends first.
    `gpu_memory_gib`: the least memory of each device, on classes where it can be requested.
    """

    units: int = 1
    hours: int | None = None
    kind: str = JOB
    instead_of: int | None = None
    workers: int = 1
    priority: str = ""
    gpu_memory_gib: int | None = None

    @property
    def total_units(self) -> int:
        return self.units * self.workers

    @property
    def goes_as(self) -> str:
        """The effective priority."""
        return self.priority if self.priority in PRIORITIES else DEFAULT_PRIORITY[self.kind]


@dataclass(frozen=True)
class ClassLoad:
    """Units of one class: of the runs that use some, and of each queued run, in their order. `ahead`: how many of the
    queued runs are ahead of a new one. `freed`, `freed_workers`: units and workers of the run that ends first.
    """

    used: int = 0
    waiting: tuple[int, ...] = ()
    ahead: int = 0
    freed: int = 0
    freed_workers: int = 0


NO_LOAD = ClassLoad()


def outlooks(
    namespace: Namespace, found: Collection[tuple[GpuClass, policy.ClassFacts]], size: LaunchSize
) -> dict[str, Outlook]:
    """Returns outlooks by slug, in the order of `found`. About eleven queries, whatever the number of classes. For
    several workers, all nodes are read.
    """
    classes = [one for one, _ in found]
    known = class_figures(namespace, classes, size)
    most = _node_units(namespace.cluster_id, classes) if size.units > 1 else {}
    shown = {}
    for one, facts in found:
        figures = known[one.slug]
        # Only the chosen class has a field for the memory: what it says is no obstacle on the others.
        asked = size.gpu_memory_gib if figures.memory_sizes else None
        sized = replace(facts, node_units=most.get(one.pk), memory_sizes=figures.memory_sizes)
        never = policy.may_ever_start(sized, size.units, size.workers) or policy.may_have_memory(
            sized, asked, size.units
        )
        text, tone = availability_sentence(figures, never, size.units, size.workers)
        kinds = "" if one.kinds == GpuClass.Kinds.ANY else one.get_kinds_display()
        total = cost(
            size.total_units,
            size.hours or one.run_hours_limit,
            unit=figures.unit,
            weight=weights.exact_weight(one.weight, one.replicas),
            price=one.price_per_unit_hour,
        )
        may_be = "" if tone == BAD else _interruption(namespace.cluster, one, figures, size)
        shown[one.slug] = Outlook(
            one.slug, one.name, text, tone, unit_price(one), kinds, total, may_be, figures.memory_sizes
        )
    return shown


def class_figures(
    namespace: Namespace, classes: Collection[GpuClass], size: LaunchSize
) -> dict[str, AvailabilityFigures]:
    """The figures of each class for a new run of the team, by slug. Every page that says what can start now uses them.
    About nine queries, whatever the number of classes.
    """
    capacities = capacity_queries.capacities(namespace.cluster, classes, with_nodes=size.workers > 1)
    now = timezone.now()
    granted = units_in_force(namespace.tenant_id, now)
    runs, limits = _runs(namespace, size), limits_of(namespace)
    found = {}
    for one in classes:
        theirs, of_unit = runs.get(one.slug, NO_LOAD), unit_size(one)
        capacity, sizes = capacities[one.pk], memory_sizes(one, capacities[one.pk])
        gib = size.gpu_memory_gib if sizes else None
        if gib is not None:
            capacity = capacity_queries.of_memory(capacity, one, gib)
        found[one.slug] = AvailabilityFigures(
            unit=catalog.unit_of(one),
            granted=granted.get(one.pk, 0),
            used=theirs.used,
            borrowing_limit=one.borrowing_limit,
            on_one_node=capacity.most_on_one_node,
            free_on=tuple(node.free for node in capacity.nodes),
            held=life_cycle.hold_sentence(one, now=now),
            leaving=catalog.retirement_notice(one),
            waiting=theirs.waiting,
            ahead=theirs.ahead,
            foreign=limits.foreign_units(of_unit, theirs.used + theirs.freed),
            closed=limits.closed,
            added=_added(one, capacity.allocatable),
            node_minutes=one.node_minutes,
            rooms=limits.rooms(of_unit, freed=theirs.freed, freed_workers=theirs.freed_workers),
            memory_sizes=sizes,
            memory_gib=gib,
        )
    return found


def _added(one: GpuClass, allocatable: int | None) -> int:
    """Units of nodes that an autoscaler may still add."""
    return max(0, (one.max_units or 0) - (allocatable or 0))


def _interruption(cluster: Cluster, one: GpuClass, figures: AvailabilityFigures, size: LaunchSize) -> str:
    units = size.total_units
    place = QuotaPosition(Standing.NO_QUEUE)
    if cluster.queue_system == Cluster.QueueSystem.KUEUE and one.resource:
        own = figures.granted - figures.in_use - figures.taken_first
        place = position_at_launch(units, own=own, borrowing_limit=one.borrowing_limit)
    return exposure(place, units=units, rank=PRIORITIES.index(size.goes_as), unit=figures.unit, holds=False).sentence


def _runs(namespace: Namespace, size: LaunchSize) -> dict[str, ClassLoad]:
    """Returns the load by class slug. Notebooks go before jobs, so only notebooks and production workloads are ahead of
    a notebook. One query.
    """
    named = {
        "namespace": namespace.pk,
        "instead_of": size.instead_of or 0,
        "rank": PRIORITIES.index(size.goes_as),
    }
    with connection.cursor() as cursor:
        cursor.execute(_RUNS, named)
        return {
            slug: ClassLoad(used, tuple(waiting), ahead, freed, freed_workers)
            for slug, used, waiting, ahead, freed, freed_workers in cursor.fetchall()
        }


def _node_units(cluster_id: int, classes: Collection[GpuClass]) -> dict[int, int]:
    """By class id, as `workloads.launch.queries.node_units` does for one class. Two queries."""
    counted = [one.pk for one in classes if one.interface == GpuClass.Interface.DEVICE_PLUGIN]
    if not counted or not mirror.is_known(cluster_id, "Node"):
        return {}
    statement = f"""
        SELECT class.id, max((node.record -> 'capacity' ->> class.resource)::bigint)
          FROM {GpuClass._meta.db_table} class
          JOIN {MirrorNode._meta.db_table} node
            ON node.cluster_id = class.cluster_id AND node.record -> 'labels' @> class.node_labels
         WHERE class.id = ANY(%s) GROUP BY class.id"""
    with connection.cursor() as cursor:
        cursor.execute(statement, [counted])
        return {pk: int(units) for pk, units in cursor.fetchall() if units}


def limits_of(namespace: Namespace) -> TeamLimits:
    """One query."""
    return team_limits(read_queries.limiting_objects(namespace.cluster_id, namespace.name))


# Of a Job without our owner label, or of no Job. A Job that is not mirrored yet may be ours.
_OUTSIDE = f"""
SELECT asked.key, queued.record -> 'flavors' ->> asked.key, sum(asked.value::bigint)
  FROM {MirrorWorkload._meta.db_table} queued
  LEFT JOIN {MirrorJob._meta.db_table} job ON job.cluster_id = queued.cluster_id AND job.uid = queued.job_uid
 CROSS JOIN LATERAL jsonb_each_text(queued.record -> 'usage') asked
 WHERE queued.cluster_id = %s AND queued.namespace = %s
   AND queued.record -> 'conditions' @> '[{{"type": "QuotaReserved", "status": "True"}}]'
   AND NOT queued.record -> 'conditions' @> '[{{"type": "Finished", "status": "True"}}]'
   AND (job.owner = '' OR queued.job_uid = '' AND queued.owner = '')
 GROUP BY 1, 2"""


def outside_units(namespace: Namespace) -> dict[tuple[str, str], int]:
    """By class slug and resource: what Kueue has reserved for workloads that were not started in the portal. One query.
    Unlike `TeamLimits.foreign_units` it counts no run of the portal whose end Kueue has not seen yet.
    """
    found: dict[tuple[str, str], int] = {}
    if namespace.origin == Namespace.Origin.UNADOPTED:
        return found
    with connection.cursor() as cursor:
        cursor.execute(_OUTSIDE, [namespace.cluster_id, namespace.name])
        for resource, flavor, units in cursor.fetchall():
            key = ((flavor or "").rpartition("-")[0], resource)
            found[key] = found.get(key, 0) + int(units)
    return found


def unit_size(one: GpuClass) -> UnitSize:
    return UnitSize(one.slug, one.resource, one.cpu_per_unit, one.memory_gib_per_unit)


@dataclass(frozen=True)
class EstimateAccuracy:
    """The accuracy for recently started runs that had an estimated range; the first range of each run counts."""

    starts: int
    inside: int
    before: int

    @property
    def sentence(self) -> str:
        """Returns "" while no run with an estimated range has started."""
        if not self.starts:
            return ""
        after = self.starts - self.inside - self.before
        return (
            f"{self.inside} of {plural(self.starts, 'start')} in the last {RECENT.days} days "
            f"{'was' if self.inside == 1 else 'were'} within the first estimated range; {self.before} earlier, "
            f"{after} later."
        )


def estimate_accuracy(one: GpuClass) -> EstimateAccuracy:
    """One query."""
    first = StartPrediction.objects.filter(
        run=OuterRef("pk"), earliest__isnull=False, made_at__lte=OuterRef("started_at")
    ).order_by("made_at", "pk")
    rows = (
        Run.objects.filter(started_at__gte=timezone.now() - RECENT, workload__namespace__cluster_id=one.cluster_id)
        .annotate(
            slug=KT("spec__gpu_class"),
            earliest=Subquery(first.values("earliest")[:1]),
            latest=Subquery(first.values("latest")[:1]),
        )
        .filter(slug=one.slug, earliest__isnull=False)
        .order_by()
        .values_list("started_at", "earliest", "latest")
    )
    found = list(rows)
    return EstimateAccuracy(
        starts=len(found),
        inside=sum(earliest <= at <= latest for at, earliest, latest in found),
        before=sum(at < earliest for at, earliest, _latest in found),
    )


def unit_price(gpu_class: GpuClass) -> str:
    """Returns the price of one unit and hour; "" if it is free of charge."""
    price = gpu_class.price_per_unit_hour
    return f"{price.normalize():f}" if price else ""


def run_units(namespace: Namespace) -> tuple[dict[str, int], dict[str, int]]:
    """Returns by class slug the units that runs use and the units that queued runs wait for. One query."""
    units = total_units()
    rows = (
        Run.objects.filter(workload__namespace=namespace, ended_at=None)
        .order_by()
        .values(slug=KT("spec__gpu_class"))
        .annotate(used=Sum(units, filter=HOLDS), queued=Sum(units, filter=~HOLDS))
    )
    found = list(rows)
    return {row["slug"]: row["used"] or 0 for row in found}, {row["slug"]: row["queued"] or 0 for row in found}


def waiting_units(cluster: Cluster) -> dict[str, int] | None:
    """Returns by class slug the units of runs whose Kueue Workload has no quota yet. None: unknown. Two queries.

    Without Kueue no run is queued.
    """
    if cluster.queue_system != Cluster.QueueSystem.KUEUE:
        return {}
    if not read_queries.is_known(cluster.pk, "Workload", "Job"):
        return None
    with connection.cursor() as cursor:
        cursor.execute(_WAITING, [cluster.pk])
        return {slug: int(units) for slug, units in cursor.fetchall()}
