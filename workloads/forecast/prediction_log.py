"""Records start estimates, to compare them with actual starts. A task calls it once a minute; pages write nothing.

At most twenty rows per run. A new row is written at most every ten minutes, and only if the estimate has changed. As
with usage samples, these are measurements and not decisions, so there is no Event.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Count, F, IntegerField, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.utils import timezone

from workloads.core import workload_sql
from workloads.forecast.models import NO_BASIS
from workloads.models import Run, StartPrediction, Workload
from workloads.status import queries
from workloads.status.estimates.estimate import CannotTell, Estimate, EstimateOutcome

PREDICTION_INTERVAL = timedelta(minutes=10)
PREDICTIONS_PER_RUN = 20
# The queue reports what a run waits for within a few seconds.
SETTLES = timedelta(minutes=1)
PREDICTION_RETENTION = timedelta(days=90)
# The maximum number of runs and of old rows in one pass.
RUNS, OLD_ROWS = 200, 500


def log_predictions() -> int:
    """Returns how many runs were read."""
    now = timezone.now()
    found: dict[int, list[int]] = {}
    due = _due(now).order_by(F("checked_at").asc(nulls_first=True), "pk")
    for run_id, namespace_id in due.values_list("pk", "workload__namespace_id")[:RUNS]:
        found.setdefault(namespace_id, []).append(run_id)
    read = sum(_predict(namespace_id, run_ids, now) for namespace_id, run_ids in found.items())
    purge_predictions(before=now - PREDICTION_RETENTION)
    return read


def purge_predictions(*, before: datetime) -> int:
    """Returns how many rows were deleted. Rows are in the order of their ids, so old rows come first."""
    first = StartPrediction.objects.order_by("pk").values_list("pk", "made_at")[:OLD_ROWS]
    old = [pk for pk, made_at in first if made_at < before]
    return StartPrediction.objects.filter(pk__in=old).delete()[0] if old else 0


def _due(now: datetime) -> QuerySet[Run]:
    """Returns runs that wait for their first start and were not read recently."""
    kept = StartPrediction.objects.filter(run=OuterRef("pk")).order_by()
    count = kept.values("run").annotate(count=Count("pk")).values("count")
    return (
        Run.objects.filter(
            ended_at=None,
            admitted_at=None,
            stop_requested_at=None,
            requested_at__lte=now - SETTLES,
            workload__delete_requested_at=None,
        )
        .annotate(
            checked_at=Subquery(kept.order_by("-made_at", "-pk").values("checked_at")[:1]),
            told=Coalesce(Subquery(count, output_field=IntegerField()), 0),
        )
        .filter(Q(checked_at=None) | Q(checked_at__lte=now - PREDICTION_INTERVAL), told__lt=PREDICTIONS_PER_RUN)
    )


@transaction.atomic
def _predict(namespace_id: int, run_ids: list[int], now: datetime) -> int:
    """Skips rows that another worker has locked."""
    free = _due(now).filter(pk__in=run_ids).select_for_update(of=("self",), no_key=True, skip_locked=True)
    runs = {run.workload_id: run for run in free}
    if not runs:
        return 0
    last = {
        one.run_id: one
        for one in StartPrediction.objects.filter(run__in=runs.values())
        .order_by("run_id", "-made_at", "-pk")
        .distinct("run_id")
    }
    workloads = Workload.objects.filter(pk__in=runs, namespace_id=namespace_id)
    for row in queries.workload_rows(workload_sql.with_related(workloads)):
        # Pages show outdated estimates with their time only.
        if row.estimate is not None and row.as_of.is_current:
            _keep(runs[row.workload.pk], row.estimate, last.get(runs[row.workload.pk].pk), now)
    return len(runs)


def _keep(run: Run, told: EstimateOutcome, last: StartPrediction | None, now: datetime) -> None:
    if last is not None and _is_same(last, told):
        StartPrediction.objects.filter(pk=last.pk).update(checked_at=now)
        return
    earliest, latest, basis = (None, None, NO_BASIS) if isinstance(told, CannotTell) else _columns(told)
    StartPrediction.objects.create(run=run, made_at=now, checked_at=now, earliest=earliest, latest=latest, basis=basis)


def _columns(told: Estimate) -> tuple[datetime, datetime, str]:
    return told.earliest, told.latest, str(told.code)


def _is_same(last: StartPrediction, told: EstimateOutcome) -> bool:
    """An earliest start of "now" moves with the clock; that alone is not a change."""
    if isinstance(told, CannotTell):
        return last.basis == NO_BASIS
    if last.earliest is None or (last.latest, last.basis) != (told.latest, str(told.code)):
        return False
    return last.earliest == told.earliest or (told.is_open and last.earliest <= told.earliest)
