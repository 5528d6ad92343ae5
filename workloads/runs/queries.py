"""Runs of a workload by number: earlier runs, the last one, and the requested next one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from django.db import connection
from django.db.models import Count, Exists, Max, OuterRef, Q, QuerySet
from django.utils import timezone

from accounts.events.queries import row_label
from accounts.models import Event
from catalog.models import GpuClass
from cluster.models import Cluster
from portal.core.errors import NOT_FOUND, Refused
from portal.core.sql import columns, instance
from tenants.lifecycle.trial_expiry.queries import TeamRuns
from tenants.models import Namespace
from workloads.interruption.queries import REQUEUED
from workloads.lifetime import queries as lifetime_queries
from workloads.models import AllocationInterval, Run, RunLog, Workload
from workloads.status import queries
from workloads.status.outcome import INTERRUPTED_REASONS as INTERRUPTED_ENDS
from workloads.status.phase import status_of
from workloads.status.types import Phase, Status
from workloads.status.workload_row import WorkloadRow

LifeCycle = GpuClass.LifeCycle

_ACTIVE_RUN = f"""
SELECT {columns(Run, "run")}, namespace.closes_at, namespace.cluster_id, class.name AS class_name,
       CASE WHEN class.life_cycle IN ('{LifeCycle.RETIRING}', '{LifeCycle.RETIRED}') THEN class.runs_until END
       AS runs_until, {lifetime_queries.MAY_LAUNCH_SQL} AS may_launch,
       cluster.queue_system = '{Cluster.QueueSystem.KUEUE}' AS has_queue,
       (SELECT held.starts_at FROM {AllocationInterval._meta.db_table} held
         WHERE held.run_id = run.id AND held.ends_at IS NULL) AS holds_since
  FROM {Run._meta.db_table} run
  JOIN {Workload._meta.db_table} workload ON workload.id = run.workload_id
  JOIN {Namespace._meta.db_table} namespace ON namespace.id = workload.namespace_id
  JOIN {Cluster._meta.db_table} cluster ON cluster.id = namespace.cluster_id
  LEFT JOIN {GpuClass._meta.db_table} class
    ON class.cluster_id = namespace.cluster_id AND class.slug = run.spec ->> 'gpu_class'
 WHERE run.workload_id = %s AND run.ended_at IS NULL"""


# PostgreSQL cannot compare larger numbers, and no run has one.
NUMBER_LIMIT = 2_000_000_000


@dataclass(frozen=True)
class RunRow:
    """`of_last`: the row of the workload with its current status, if this is its last run. `run` is an unsaved object
    if the run has not been created yet. `followed_by`: number of the run that the portal created to replace this
    interrupted run.
    """

    workload: Workload
    run: Run
    status: Status
    of_last: WorkloadRow | None = None
    followed_by: int | None = None


def runs_of(workload: Workload) -> QuerySet[Run]:
    return Run.objects.filter(workload=workload).select_related("watch")


def numbered(workload: Workload, number: int) -> RunRow:
    """Returns one run of a workload that was read `with_names`. An earlier run is read from its row alone; the last run
    takes the additional queries of `workload_rows`. Raises Refused (404).
    """
    if number > NUMBER_LIMIT:
        raise Refused(NOT_FOUND)
    found = {run.number: run for run in runs_of(workload).filter(number__in=(number - 1, number, number + 1))}
    run, before = found.get(number), found.get(number - 1)
    if run is None:
        if before is None or not has_next_run(workload, before):
            raise Refused(NOT_FOUND)
        return _to_come(workload, before)
    if number + 1 in found:
        return RunRow(workload, run, _ended(workload, run), followed_by=number + 1 if was_requeued(run) else None)
    row = queries.workload_rows([workload])[0]
    if row.run is None or row.run.number != number:  # another one started just now
        return numbered(workload, number)
    return RunRow(workload, row.run, row.status, of_last=row)


def has_next_run(workload: Workload, last: Run) -> bool:
    return last.next_wanted_by_id is not None and workload.delete_requested_at is None


def _ended(workload: Workload, run: Run) -> Status:
    """The status has the sentence of this run. Only the last run has next actions."""
    wish = queries.desired_run(workload, run, workload.gpu_class, None, signs_in=False)
    assert wish is not None, "of a run"
    return replace(status_of(replace(wish, is_deleting=False), None, now=timezone.now()), actions=())


def _to_come(workload: Workload, before: Run) -> RunRow:
    run = Run(workload=workload, number=before.number + 1, group=before.group, spec={})
    run.requested_at = None  # type: ignore[assignment]  # a row has it from the database
    told = f"It starts when run {before.number} has ended, with the workload's configuration at that time."
    return RunRow(workload, run, Status(Phase.QUEUED, "follows", told, None))


def was_requeued(run: Run) -> bool:
    """Returns whether the portal, and not a person, created the run after this ended run. One query for an interrupted
    run, otherwise none.
    """
    if run.reason not in INTERRUPTED_ENDS:
        return False
    made = Event.objects.filter(row=row_label(run.workload), verb=REQUEUED, after__run=run.number + 1)
    return made.exists()


def earlier_runs(row: WorkloadRow) -> list[Any]:
    """Returns the latest 20 runs before the run of this row, newest first, each with `has_log`. One query; none if this
    is the first run.
    """
    if row.run is None or row.run.number == 1:
        return []
    earlier = Run.objects.filter(workload=row.workload, number__lt=row.run.number)
    has_log = Exists(RunLog.objects.filter(run=OuterRef("pk"), problem=""))
    return list(earlier.annotate(has_log=has_log).order_by("-number")[:20])


def active_run(workload: Workload) -> Any:
    """Returns None if all runs have ended. `closes_at`: None while the team is not closed; `runs_until`: None while the
    class is not retired; `may_launch`: whether the person who requested the run may still launch; `holds_since`: start
    of the open allocation interval. One query, written as SQL text for speed: users wait for the first pass over a run.
    """
    with connection.cursor() as cursor:
        cursor.execute(_ACTIVE_RUN, [workload.pk])
        found = cursor.fetchone()
    if found is None:
        return None
    values = iter(found)
    run: Any = instance(Run, values)
    run.workload = workload
    run.closes_at, run.cluster_id, run.class_name, run.runs_until, run.may_launch = islice(values, 5)
    run.has_queue, run.holds_since = values
    return run


def count_unfinished(gpu_class: GpuClass) -> int:
    """Counts runs on the class that have not ended, by their frozen specs: a workload may be declared with another
    class while its run continues with this one. One query.
    """
    of_class = Run.objects.filter(spec__gpu_class=gpu_class.slug, workload__namespace__cluster=gpu_class.cluster_id)
    return of_class.filter(ended_at=None).count()


def team_runs(tenant_id: int) -> TeamRuns:
    """One query."""
    found = Run.objects.filter(workload__namespace__tenant=tenant_id).aggregate(
        unfinished=Count("pk", filter=Q(ended_at=None)), ended=Max("ended_at")
    )
    return TeamRuns(found["unfinished"] > 0, found["ended"])


def teams_with_workloads(classes: QuerySet[Any]) -> QuerySet[Any]:
    """Keys of the teams that have workloads, not deleted, of these classes."""
    return Workload.objects.filter(Workload.IS_LIVE, gpu_class__in=classes).values("tenant")
