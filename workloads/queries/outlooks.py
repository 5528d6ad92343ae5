"""What so much more of each class would meet now, with the figures that the sentences are made of."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from django.contrib.postgres.aggregates import ArrayAgg
from django.db import connection
from django.db.models import Count, Q, Sum
from django.db.models.fields.json import KT
from django.db.models.functions import Coalesce
from django.utils import timezone

from catalog import life_cycle, weights
from catalog import queries as catalog
from catalog.models import GpuClass
from cluster import queries as mirror
from cluster.models import Cluster, MirrorNode
from cluster.run_spec import JOB, PRIORITIES, USUAL_PRIORITY
from tenants.models import Namespace
from tenants.queries import units_in_force
from workloads import policy
from workloads.interruption import Place, Standing, exposure, place_at_launch
from workloads.models import Run
from workloads.outlook import BAD, Figures, Outlook, cost, sentence
from workloads.queries.launching import price_of
from workloads.queries.sizes import HOLDS, by_priority, goes_before, total_units


@dataclass(frozen=True)
class Size:
    """What is asked about: so many units of any class for each of so many workers, for so many hours (None: nobody
    said), for this kind of work; `priority`: "" as the kind has it. `instead_of`: a workload's id, whose present run
    ends before.
    """

    units: int = 1
    hours: int | None = None
    kind: str = JOB
    instead_of: int | None = None
    workers: int = 1
    priority: str = ""

    @property
    def total_units(self) -> int:
        return self.units * self.workers

    @property
    def goes_as(self) -> str:
        """Its priority."""
        return self.priority if self.priority in PRIORITIES else USUAL_PRIORITY[self.kind]


@dataclass(frozen=True)
class Runs:
    """Of one class, in units: of runs that hold some, and of each that waits, in their order. `ahead`: how
    many of the latter go before a new one.
    """

    used: int = 0
    waiting: tuple[int, ...] = ()
    ahead: int = 0


NO_RUNS = Runs()


def outlooks(
    namespace: Namespace, found: Collection[tuple[GpuClass, policy.ClassFacts]], size: Size
) -> dict[str, Outlook]:
    """By slug, in the order of `found`. About ten queries, whatever the number of classes; of several workers every
    node counts.
    """
    classes = [one for one, _ in found]
    capacities = catalog.capacities(namespace.cluster, classes, with_nodes=size.workers > 1)
    most = _node_units(namespace.cluster_id, classes) if size.units > 1 else {}
    now = timezone.now()
    granted = units_in_force(namespace.tenant_id, now)
    runs = _runs(namespace, size)
    shown = {}
    for one, facts in found:
        theirs = runs.get(one.slug, NO_RUNS)
        figures = Figures(
            unit=catalog.unit_of(one),
            granted=granted.get(one.pk, 0),
            used=theirs.used,
            borrowing_limit=one.borrowing_limit,
            on_one_node=capacities[one.pk].most_on_one_node,
            free_on=tuple(node.free for node in capacities[one.pk].nodes),
            held=life_cycle.hold(one, now=now),
            leaving=catalog.retirement(one),
            waiting=theirs.waiting,
            ahead=theirs.ahead,
        )
        never = policy.may_ever_start(replace(facts, node_units=most.get(one.pk)), size.units, size.workers)
        text, tone = sentence(figures, never, size.units, size.workers)
        kinds = "" if one.kinds == GpuClass.Kinds.ANY else one.get_kinds_display()
        total = cost(
            size.total_units,
            size.hours or one.run_hours_limit,
            unit=figures.unit,
            weight=weights.exact(one.weight, one.replicas),
            price=one.price_per_unit_hour,
        )
        may_be = "" if tone == BAD else _interruption(namespace.cluster, one, figures, size)
        shown[one.slug] = Outlook(one.slug, one.name, text, tone, price_of(one), kinds, total, may_be)
    return shown


def _interruption(cluster: Cluster, one: GpuClass, figures: Figures, size: Size) -> str:
    units = size.total_units
    place = Place(Standing.NO_QUEUE)
    if cluster.queue_system == Cluster.QueueSystem.KUEUE and one.resource:
        own = figures.granted - figures.used - figures.taken_first
        place = place_at_launch(units, own=own, borrowing_limit=one.borrowing_limit)
    return exposure(place, units=units, rank=PRIORITIES.index(size.goes_as), unit=figures.unit, holds=False).sentence


def _runs(namespace: Namespace, size: Size) -> dict[str, Runs]:
    """By class slug. Notebooks go before jobs, so that only they and production work are ahead of one. One query."""
    units = total_units()
    ahead = ~HOLDS & goes_before(size.goes_as)
    rows = (
        Run.objects.filter(~Q(workload_id=size.instead_of or 0), workload__namespace=namespace, ended_at=None)
        .order_by()
        .values(slug=KT("spec__gpu_class"))
        .annotate(
            used=Coalesce(Sum(units, filter=HOLDS), 0),
            waiting=ArrayAgg(units, filter=~HOLDS, order_by=[by_priority(), "requested_at"], default=[]),
            ahead=Count("pk", filter=ahead),
        )
    )
    return {row["slug"]: Runs(row["used"], tuple(row["waiting"]), row["ahead"]) for row in rows}


def _node_units(cluster_id: int, classes: Collection[GpuClass]) -> dict[int, int]:
    """By class id, as `workloads.queries.node_units`, for many classes at once. Two queries."""
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
