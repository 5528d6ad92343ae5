"""Reads the facts for the start estimates of queued runs, for all runs of a namespace at once."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from django.db import connection
from django.utils import timezone

from catalog.classes import queries as catalog
from catalog.models import GpuClass
from cluster.models import MirrorJob
from cluster.reads import queries as mirror
from cluster.reads.observed import KueueWorkload as Queued
from portal.core.due import table_label
from portal.core.sql import columns, instance, instance_or_none
from tenants.grants.queries import GrantedUnits
from tenants.models import Namespace
from workloads.core.workload_sql import of_same_run
from workloads.models import NotebookWatch, Run, Workload
from workloads.status.estimates.estimate import (
    RECENT,
    EstimateFacts,
    EstimateOutcome,
    RunningUnits,
    UnitChange,
    UnitsAhead,
    WaitReason,
    estimate,
)
from workloads.status.observations.positions import queue_order, queue_positions
from workloads.status.types import PREEMPTED_REASONS, Phase, Status

if TYPE_CHECKING:
    from workloads.interruption.queries import ActiveRun
    from workloads.status.workload_row import WorkloadRow

# The newest starts, of all classes that some run waits for.
STARTS_READ = 2000
WAIT_REASONS = {
    "waiting_for_quota": WaitReason.UNITS,
    "reclaiming": WaitReason.UNITS,
    # A grant that starts later may allow it.
    "exceeds_maximum": WaitReason.UNITS,
    "no_node_fits": WaitReason.NODE,
    "gang_fits_in_part": WaitReason.NODES,
    "level_fits_in_part": WaitReason.NODES,
    "previous_ending": WaitReason.NODES,
    "no_cpu_or_memory": WaitReason.NODES,
    "nodes_closed": WaitReason.NODES,
    "nodes_down": WaitReason.NODES,
    "no_node_matches": WaitReason.NODES,
    "volume_elsewhere": WaitReason.NODES,
    "no_units_offered": WaitReason.NODES,
    "device_class_missing": WaitReason.NODES,
    "device_class_not_counted": WaitReason.NODES,
    "class_held": WaitReason.HELD,
    "queue_held": WaitReason.QUEUE,
    "queue_inactive": WaitReason.QUEUE,
    "queue_missing": WaitReason.QUEUE,
    "not_in_queue": WaitReason.QUEUE,
}
REASONS_WITH_FIGURES = frozenset({WaitReason.UNITS, WaitReason.NODE, WaitReason.HELD})
# The status sentence already states what happens next.
NO_TIME = frozenset({"put_back", "checked", "reserved"})


def wait_reason(status: Status) -> WaitReason | None:
    """Returns None if the run does not wait for a start, or is admitted."""
    if status.phase is Phase.BLOCKED and WAIT_REASONS.get(status.reason, WaitReason.NODES) is WaitReason.NODES:
        return WaitReason.NEVER if status.explained is not None and status.explained.is_final else None
    if status.phase not in (Phase.QUEUED, Phase.BLOCKED) or status.reason in NO_TIME:
        return None
    if status.reason in PREEMPTED_REASONS:
        # The sentence covers the preemption and the wait; the figures are of what the run waits for now.
        return (
            WaitReason.UNITS
            if "missing_units" in status.facts
            else WaitReason.NODE
            if "units" in status.facts
            else WaitReason.UNSEEN
        )
    return WAIT_REASONS.get(status.reason, WaitReason.UNSEEN)


def estimates_of(
    namespace: Namespace, rows: Iterable[WorkloadRow], own: GrantedUnits, alive: Collection[ActiveRun]
) -> dict[int, EstimateOutcome]:
    """Returns estimates by workload id, for the rows that wait; all rows are of this namespace. `own`: the team's quota
    now; `alive`: the unfinished runs of these rows. No query if no figures are needed, otherwise one; three if other
    runs use units or wait, and one more if the queue was not read before.
    """
    found = {row.workload.pk: (row, wait) for row in rows if row.run and (wait := wait_reason(row.status)) is not None}
    classes = {row.gpu_class.pk: row.gpu_class for row, wait in found.values() if wait in REASONS_WITH_FIGURES}
    now = timezone.now()
    there = _There.read(namespace, classes, own, alive, now) if classes else None
    return {pk: estimate(_facts(row, wait, there), now=now) for pk, (row, wait) in found.items()}


def _facts(row: WorkloadRow, wait: WaitReason, there: _There | None) -> EstimateFacts:
    assert row.run is not None
    units = row.run.total_units
    if there is None or wait not in REASONS_WITH_FIGURES:
        return EstimateFacts(wait, units, row.run.requested_at)
    return there.facts(row.run, row.gpu_class, wait)


# ---- facts from the database -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _There:
    """Facts about the team's queue and classes. `queued` is by run id, all others are by class id; `line`: waiting runs
    in Kueue's order.
    """

    queued: Mapping[int, Queued]
    line: Mapping[int, Sequence[Run]]
    running: Mapping[int, tuple[RunningUnits, ...]]
    granted: Mapping[int, int]
    changes: Mapping[int, tuple[UnitChange, ...]]
    starts: Mapping[int, tuple[timedelta, ...]]

    @classmethod
    def read(
        cls,
        namespace: Namespace,
        classes: Mapping[int, GpuClass],
        own: GrantedUnits,
        alive: Collection[ActiveRun],
        now: datetime,
    ) -> _There:
        seen_line = next((one.seen.line for one in alive), None)
        line_up = queue_positions(namespace.cluster_id, namespace.name) if seen_line is None else seen_line
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

    def facts(self, run: Run, one: GpuClass, wait: WaitReason) -> EstimateFacts:
        line = self.line.get(one.pk, ())
        place = next((place for place, other in enumerate(line) if other.pk == run.pk), None)
        queued = self.queued.get(run.pk)
        # A run that cannot be admitted yet has no position, but some runs will be ahead of it once it can be.
        before = place if place is not None else self._before(queued, line)
        reserved = queued.condition("QuotaReserved") if queued is not None and run.admitted_at else None
        return EstimateFacts(
            wait=wait,
            units=run.total_units,
            # The waiting time of a preempted run starts again.
            since=(reserved.since if reserved else None) or run.requested_at,
            unit=catalog.unit_of(one),
            position=None if place is None else place + 1,
            granted=self.granted.get(one.pk, 0),
            borrowing=one.borrowing_limit,
            changes=self.changes.get(one.pk, ()),
            running=self.running[one.pk],
            ahead=tuple(UnitsAhead(other.total_units, _minutes(other)) for other in line[:before]),
            behind=tuple(other.total_units for other in line[before:] if other.pk != run.pk),
            held_until=one.held_until,
            starts=self.starts.get(one.pk, ()),
        )

    def _before(self, queued: Queued | None, line: Sequence[Run]) -> int:
        if queued is None:
            return len(line)
        # Positions and Workloads are two reads: what was queued in between has a position only.
        theirs = (self.queued[other.pk] for other in line if other.pk in self.queued)
        return sum(queue_order(one) < queue_order(queued) for one in theirs)


def _running(
    one: GpuClass, in_kueue: Mapping[str, Queued], of_job: Mapping[str, Run], now: datetime
) -> Iterable[RunningUnits]:
    """Returns everything that uses units of the class in the team's queue, whether started in the portal or not."""
    flavor = catalog.flavor_name(one)
    for uid, queued in in_kueue.items():
        if not queued.is_true("QuotaReserved") or queued.is_true("Finished"):
            continue
        run = of_job.get(uid)
        if run is not None:
            if run.spec["gpu_class"] == one.slug:
                yield RunningUnits(run.total_units, _end(run, now))
            continue
        units = sum(queued.usage.get(resource, 0) for resource, its in queued.flavors.items() if its == flavor)
        if units:
            yield RunningUnits(units)


def _end(run: Run, now: datetime) -> datetime | None:
    """Returns the known end: a stop was requested, the time limit ends then, or a stop for being idle was announced."""
    if run.stop_requested_at is not None:
        return now
    watch = getattr(run, "watch", None)
    ends = (run.ends_at, watch.stops_at if watch else None)
    return min((at for at in ends if at is not None), default=None)


def _minutes(run: Run) -> int | None:
    minutes: int | None = run.spec.get("run_minutes")
    return None if minutes is None else minutes + run.extended_minutes


def _granted(own: GrantedUnits) -> tuple[dict[int, int], dict[int, tuple[UnitChange, ...]]]:
    """Returns by class id the units granted now and the scheduled changes."""
    granted: dict[int, int] = {}
    changes: dict[int, list[UnitChange]] = {}
    for one in own.running:
        granted[one.gpu_class_id] = granted.get(one.gpu_class_id, 0) + one.units
    for one in own.to_come:
        changes.setdefault(one.gpu_class_id, []).append((one.period.lower, one.units))
    for one in (*own.running, *own.to_come):
        changes.setdefault(one.gpu_class_id, []).append((one.period.upper, -one.units))
    return granted, {pk: tuple(theirs) for pk, theirs in changes.items()}


def _starts(cluster_id: int, slugs: Mapping[str, int], now: datetime) -> dict[int, tuple[timedelta, ...]]:
    """Returns by class id how long recently started runs of all teams had waited. One query."""
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


def _known(alive: Collection[ActiveRun]) -> tuple[dict[str, Run], dict[str, Queued]]:
    """Returns by Job uid the given runs, and the Kueue status of these runs and of all others that use units in the
    queue.
    """
    of_job = {one.seen.job.uid: one.run for one in alive if one.seen.job is not None}
    in_kueue = {one.job_uid: one for one in next((one.seen.holding for one in alive), ())}
    in_kueue |= {one.seen.queue.job_uid: one.seen.queue for one in alive if one.seen.queue is not None}
    return of_job, in_kueue


def _runs_by_job(namespace: Namespace) -> dict[str, Run]:
    """Returns by Job uid the unfinished runs, each with its watch. One query."""
    with connection.cursor() as cursor:
        cursor.execute(_RUNS, [namespace.cluster_id, namespace.name, f"{table_label(Workload)}.", namespace.pk])
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
   AND job.run = workload.name || '-' || run.number AND {of_same_run("job")}
  LEFT JOIN {NotebookWatch._meta.db_table} watch ON watch.run_id = run.id
 WHERE workload.namespace_id = %s"""
