"""Start estimates of runs that wait: what they are made of, for all of a namespace at once, and how well they did."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from django.db import connection
from django.db.models import OuterRef, Subquery
from django.db.models.fields.json import KT
from django.utils import timezone

from catalog import queries as catalog
from catalog.models import GpuClass
from cluster import queries as mirror
from cluster.models import MirrorJob
from cluster.observed import Workload as Queued
from portal.due import label
from portal.sql import columns, instance, instance_or_none
from tenants.models import Namespace
from tenants.queries.grants import Held
from workloads.estimate import RECENT, Ahead, CannotTell, Estimate, Facts, Running, Step, Wait, estimate
from workloads.models import NotebookWatch, Run, StartPrediction, Workload
from workloads.phase import Phase, Status
from workloads.queries.places import in_kueues_order, places

if TYPE_CHECKING:
    from workloads.queries import WorkloadRow
    from workloads.queries.interruptions import Shown

Told = Estimate | CannotTell
# The newest of all classes that something waits for.
STARTS_READ = 2000
WAITS = {
    "waiting_for_quota": Wait.UNITS,
    "reclaiming": Wait.UNITS,
    # A grant that begins later may allow it.
    "exceeds_maximum": Wait.UNITS,
    "no_node_fits": Wait.NODE,
    "gang_fits_in_part": Wait.NODES,
    "previous_ending": Wait.NODES,
    "no_cpu_or_memory": Wait.NODES,
    "nodes_closed": Wait.NODES,
    "nodes_down": Wait.NODES,
    "no_node_matches": Wait.NODES,
    "no_units_offered": Wait.NODES,
    "device_class_missing": Wait.NODES,
    "device_class_not_counted": Wait.NODES,
    "class_held": Wait.HELD,
    "queue_held": Wait.QUEUE,
    "queue_inactive": Wait.QUEUE,
    "queue_missing": Wait.QUEUE,
    "not_in_queue": Wait.QUEUE,
}
WITH_FIGURES = frozenset({Wait.UNITS, Wait.NODE, Wait.HELD})
PREEMPTED = frozenset({"preempted", "preempted_in_team"})
# Their sentence says what is next.
NO_TIME = frozenset({"put_back", "checked", "reserved"})


def wait_of(status: Status) -> Wait | None:
    """None: it does not wait for a start, or its units are assigned."""
    if status.phase is Phase.BLOCKED and WAITS.get(status.reason, Wait.NODES) is Wait.NODES:
        return Wait.NEVER if status.explained is not None and status.explained.is_final else None
    if status.phase not in (Phase.QUEUED, Phase.BLOCKED) or status.reason in NO_TIME:
        return None
    if status.reason in PREEMPTED:
        # The sentence tells of both; the figures are of what it waits for now.
        return Wait.UNITS if "missing_units" in status.facts else Wait.NODE if "units" in status.facts else Wait.UNSEEN
    return WAITS.get(status.reason, Wait.UNSEEN)


def estimates_of(
    namespace: Namespace, rows: Iterable[WorkloadRow], own: Held, alive: Collection[Shown]
) -> dict[int, Told]:
    """By workload id, of those rows of the namespace that wait. `own`: what the team is granted now; `alive`: runs of
    these rows. No query when no figures are needed, else one; three when others hold units or wait, one more when
    nobody looked at the line.
    """
    found = {row.workload.pk: (row, wait) for row in rows if row.run and (wait := wait_of(row.status)) is not None}
    classes = {row.gpu_class.pk: row.gpu_class for row, wait in found.values() if wait in WITH_FIGURES}
    now = timezone.now()
    there = _There.read(namespace, classes, own, alive, now) if classes else None
    return {pk: estimate(_facts(row, wait, there), now=now) for pk, (row, wait) in found.items()}


def _facts(row: WorkloadRow, wait: Wait, there: _There | None) -> Facts:
    assert row.run is not None
    units = row.run.total_units
    if there is None or wait not in WITH_FIGURES:
        return Facts(wait, units, row.run.requested_at)
    return there.facts(row.run, row.gpu_class, wait)


# ---- what is there ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _There:
    """By run id: `queued`. By class id: the rest; `line`: runs that wait, in Kueue's order."""

    queued: Mapping[int, Queued]
    line: Mapping[int, Sequence[Run]]
    running: Mapping[int, tuple[Running, ...]]
    granted: Mapping[int, int]
    changes: Mapping[int, tuple[Step, ...]]
    starts: Mapping[int, tuple[timedelta, ...]]

    @classmethod
    def read(
        cls,
        namespace: Namespace,
        classes: Mapping[int, GpuClass],
        own: Held,
        alive: Collection[Shown],
        now: datetime,
    ) -> _There:
        seen_line = next((one.seen.line for one in alive), None)
        line_up = places(namespace.cluster_id, namespace.name) if seen_line is None else seen_line
        of_job, in_kueue = _known(alive)
        if not line_up.keys() | in_kueue.keys() <= of_job.keys():
            of_job = _runs_by_job(namespace)
            in_kueue = {one.job_uid: one for one in mirror.workloads(namespace.cluster_id, namespace=namespace.name)}
        slugs = {one.slug: pk for pk, one in classes.items()}
        line: dict[int, list[Run]] = {}
        for uid in sorted(line_up, key=line_up.__getitem__):
            run = of_job.get(uid)
            if run is not None and (pk := slugs.get(run.spec["gpu_class"])) is not None:
                line.setdefault(pk, []).append(run)
        granted, changes = _granted(own)
        return cls(
            queued={run.pk: in_kueue[uid] for uid, run in of_job.items() if uid in in_kueue},
            line=line,
            running={pk: tuple(_running(one, in_kueue, of_job, now)) for pk, one in classes.items()},
            granted=granted,
            changes=changes,
            starts=_starts(namespace.cluster_id, slugs, now),
        )

    def facts(self, run: Run, one: GpuClass, wait: Wait) -> Facts:
        line = self.line.get(one.pk, ())
        place = next((place for place, other in enumerate(line) if other.pk == run.pk), None)
        queued = self.queued.get(run.pk)
        # What cannot be admitted yet has no place, but some go before it once it can.
        before = place if place is not None else self._before(queued, line)
        reserved = queued.condition("QuotaReserved") if queued is not None and run.admitted_at else None
        return Facts(
            wait=wait,
            units=run.total_units,
            # What was interrupted waits anew.
            since=(reserved.since if reserved else None) or run.requested_at,
            unit=catalog.unit_of(one),
            position=None if place is None else place + 1,
            granted=self.granted.get(one.pk, 0),
            borrowing=one.borrowing_limit,
            changes=self.changes.get(one.pk, ()),
            running=self.running[one.pk],
            ahead=tuple(Ahead(other.total_units, _minutes(other)) for other in line[:before]),
            behind=tuple(other.total_units for other in line[before:] if other.pk != run.pk),
            held_until=one.held_until,
            starts=self.starts.get(one.pk, ()),
        )

    def _before(self, queued: Queued | None, line: Sequence[Run]) -> int:
        if queued is None:
            return len(line)
        theirs = [self.queued[other.pk] for other in line]
        return sum(in_kueues_order(one) < in_kueues_order(queued) for one in theirs)


def _running(
    one: GpuClass, in_kueue: Mapping[str, Queued], of_job: Mapping[str, Run], now: datetime
) -> Iterable[Running]:
    """What holds units of the class in the team's queue, started here or not."""
    flavor = catalog.flavor_name(one)
    for uid, queued in in_kueue.items():
        if not queued.is_true("QuotaReserved") or queued.is_true("Finished"):
            continue
        run = of_job.get(uid)
        if run is not None:
            if run.spec["gpu_class"] == one.slug:
                yield Running(run.total_units, _end(run, now))
            continue
        units = sum(queued.usage.get(resource, 0) for resource, its in queued.flavors.items() if its == flavor)
        if units:
            yield Running(units)


def _end(run: Run, now: datetime) -> datetime | None:
    """Known: it was asked to stop, its time is over then, or people were told that it stops for being idle."""
    if run.stop_requested_at is not None:
        return now
    watch = getattr(run, "watch", None)
    ends = (run.ends_at, watch.stops_at if watch else None)
    return min((at for at in ends if at is not None), default=None)


def _minutes(run: Run) -> int | None:
    minutes: int | None = run.spec.get("run_minutes")
    return None if minutes is None else minutes + run.extended_minutes


def _granted(own: Held) -> tuple[dict[int, int], dict[int, tuple[Step, ...]]]:
    """By class id: units in force, and what changes by itself."""
    granted: dict[int, int] = {}
    changes: dict[int, list[Step]] = {}
    for one in own.running:
        granted[one.gpu_class_id] = granted.get(one.gpu_class_id, 0) + one.units
    for one in own.to_come:
        changes.setdefault(one.gpu_class_id, []).append((one.period.lower, one.units))
    for one in (*own.running, *own.to_come):
        changes.setdefault(one.gpu_class_id, []).append((one.period.upper, -one.units))
    return granted, {pk: tuple(theirs) for pk, theirs in changes.items()}


def _starts(cluster_id: int, slugs: Mapping[str, int], now: datetime) -> dict[int, tuple[timedelta, ...]]:
    """By class id: how long those that started lately had waited, of all teams. One query."""
    found: dict[int, list[timedelta]] = {}
    with connection.cursor() as cursor:
        cursor.execute(_STARTS, [now - RECENT, cluster_id, list(slugs), STARTS_READ])
        for slug, waited in cursor.fetchall():
            found.setdefault(slugs[slug], []).append(waited)
    return {pk: tuple(waits) for pk, waits in found.items()}


_STARTS = f"""
SELECT run.spec ->> 'gpu_class', run.started_at - run.requested_at
  FROM {Run._meta.db_table} run
  JOIN {Workload._meta.db_table} workload ON workload.id = run.workload_id
  JOIN {Namespace._meta.db_table} namespace ON namespace.id = workload.namespace_id
 WHERE run.started_at >= %s AND namespace.cluster_id = %s AND run.spec ->> 'gpu_class' = ANY(%s)
 ORDER BY run.started_at DESC LIMIT %s"""


def _known(alive: Collection[Shown]) -> tuple[dict[str, Run], dict[str, Queued]]:
    """By Job uid: runs, and what the queue says of them and of all that holds units there."""
    of_job = {one.seen.job.uid: one.run for one in alive if one.seen.job is not None}
    in_kueue = {one.job_uid: one for one in next((one.seen.holding for one in alive), ())}
    in_kueue |= {one.seen.queue.job_uid: one.seen.queue for one in alive if one.seen.queue is not None}
    return of_job, in_kueue


def _runs_by_job(namespace: Namespace) -> dict[str, Run]:
    """By Job uid: what has not ended, with the watch of each. One query."""
    with connection.cursor() as cursor:
        cursor.execute(_RUNS, [namespace.cluster_id, namespace.name, f"{label(Workload)}.", namespace.pk])
        rows = cursor.fetchall()
    found = {}
    for uid, *rest in rows:
        values = iter(rest)
        run, watch = instance(Run, values), instance_or_none(NotebookWatch, values)
        run._state.fields_cache["watch"] = watch
        found[uid] = run
    return found


_RUNS = f"""
SELECT job.uid, {columns(Run, "run")}, {columns(NotebookWatch, "watch")}
  FROM {Workload._meta.db_table} workload
  JOIN {Run._meta.db_table} run ON run.workload_id = workload.id AND run.ended_at IS NULL
  JOIN {MirrorJob._meta.db_table} job
    ON job.cluster_id = %s AND job.namespace = %s AND job.owner = %s || workload.id
   AND job.run = workload.name || '-' || run.number
  LEFT JOIN {NotebookWatch._meta.db_table} watch ON watch.run_id = run.id
 WHERE workload.namespace_id = %s"""


# ---- how well they did -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Accuracy:
    """Of runs that started lately and had been told a range: by the first one that was told of each."""

    starts: int
    inside: int
    before: int

    @property
    def sentence(self) -> str:
        """ "" while nothing that was told a range has started."""
        if not self.starts:
            return ""
        after = self.starts - self.inside - self.before
        began = "start" if self.starts == 1 else "starts"
        return (
            f"{self.inside} of {self.starts} {began} of the last {RECENT.days} days fell into the range that was told "
            f"first; {self.before} came before it, {after} after it."
        )


def accuracy(one: GpuClass) -> Accuracy:
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
    return Accuracy(
        starts=len(found),
        inside=sum(earliest <= at <= latest for at, earliest, latest in found),
        before=sum(at < earliest for at, earliest, _latest in found),
    )
