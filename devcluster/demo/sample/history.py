"""The 30 days before the first start of the everyday demo: sample data.

Everything is done with the portal's own actions, oldest first, and then all dates of the portal's tables are moved back
by the time until the next action. Runs of the past never reach the cluster: the transaction that launches one also
records its end. The hourly samples of use are computed from these runs. Needs Django.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from devcluster.demo.sample import quota_setup
from devcluster.demo.sample.sample_classes import A100, GAUDI, MI300X, SLICE, XE, Names

if TYPE_CHECKING:
    from django.db.models import Model

    from accounts.core.actor import Actor
    from workloads.launch.types import LaunchSpec
    from workloads.status.outcome import RunOutcome

DAYS, DAYS_PER_STEP = 30, 3
# Between the launches of a step.
GAP = timedelta(hours=4)
# Applications whose rows have the portal's own dates. The rows of `cluster` mirror what exists now.
DATED_APPS = ("accounts", "tenants", "catalog", "workloads")
# (requester, team, ((class, units), …), days, justification) of the quota that the teams got on the first day.
QUOTA = (
    ("alice", "team-a", ((SLICE, 3),), 180, "Lectures on medical imaging."),
    ("charlie", "team-c", ((A100, 4), (SLICE, 2)), 180, "Two training jobs and two small notebooks."),
    ("erin", "vision", ((A100, 4), (XE, 4)), 180, "Segmentation models and video decoding."),
    ("frank", "speech", ((A100, 4), (XE, 4), (GAUDI, 2)), 180, "Speech recognition in twelve languages."),
    ("frank", "speech", ((MI300X, 2),), DAYS + 2, "A comparison with AMD GPUs, for one month."),
)


@dataclass(frozen=True)
class PastRun:
    """`every`: on each `every`-th step, starting with step `first`."""

    team: str
    who: str
    name: str
    kind: str
    gpu_class: str
    units: int
    first: int
    every: int
    queued_minutes: int
    ran_minutes: int
    outcome: str = "succeeded"


RUNS = (
    PastRun("vision", "erin", "segmentation-nightly", "job", A100, 4, 0, 1, 4, 410),
    PastRun("speech", "frank", "asr-base", "job", A100, 2, 0, 2, 2, 520),
    PastRun("speech", "frank", "asr-large", "job", A100, 4, 1, 4, 55, 95, "failed"),
    PastRun("team-c", "charlie", "embeddings", "job", A100, 4, 1, 2, 11, 640),
    PastRun("team-a", "bob", "lecture-1", "notebook", SLICE, 1, 0, 3, 1, 110, "stopped"),
    PastRun("team-a", "alice", "lecture-2", "notebook", SLICE, 1, 2, 3, 1, 95, "stopped"),
    PastRun("speech", "frank", "tts-amd", "job", MI300X, 2, 3, 2, 7, 700),
)
# The last lines of the job that failed.
OUT_OF_GPU_MEMORY = """\
  File "/workspace/train.py", line 212, in training_step
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 9.31 GiB. GPU 0 has a total capacity of 79.25 GiB of \
which 4.12 GiB is free."""


def create_past(by: Callable[[str], Actor], names: Names) -> None:
    """Does nothing if a run exists: at later starts the past is real. `by`: the actor for a name of the cast."""
    from workloads.models import Run

    if Run.objects.exists():
        return
    for owner, team, units, days, why in QUOTA:
        lines = [(names[key], number) for key, number in units if key in names]
        if lines:
            filed = quota_setup.file_request(team, lines, why, by=by(owner), days=days)
            quota_setup.approve_request(filed, by=by("dana"))
    for step in range(DAYS // DAYS_PER_STEP):
        left = timedelta(days=DAYS_PER_STEP)
        for one in RUNS:
            if one.gpu_class in names and step >= one.first and (step - one.first) % one.every == 0:
                _record_run(replace(one, gpu_class=names[one.gpu_class]), by(one.who))
                move_back(GAP)
                left -= GAP
        move_back(left)
    _record_use()


def _record_run(one: PastRun, by: Actor) -> None:
    """Launches or starts the workload and records its end, in one transaction: the worker finds nothing to do. The end
    is in the future until the dates are moved back.
    """
    from django.db import transaction

    from workloads.allocations import recording
    from workloads.launch import actions
    from workloads.models import Run, Workload

    with transaction.atomic():
        if Workload.objects.filter(tenant__slug=one.team, name=one.name).exists():
            actions.start(one.team, one.name, by=by)
        else:
            actions.launch(one.team, _spec(one), by=by)
        run = Run.objects.get(workload__tenant__slug=one.team, workload__name=one.name, ended_at=None)
        started = run.requested_at + timedelta(minutes=one.queued_minutes)
        ended = started + timedelta(minutes=one.ran_minutes)
        end, kept = _outcome(one)
        Run.objects.filter(pk=run.pk).update(
            admitted_at=started,
            started_at=started,
            ready_at=started + timedelta(minutes=1),
            ended_at=ended,
            stop_requested_at=ended if one.outcome == "stopped" else None,
            outcome=end.outcome,
            reason=end.reason,
            message=end.message,
            exit_code=end.exit_code,
            kept=kept,
        )
        recording.record_start(run.pk)
        recording.record_end(run.pk)


def _outcome(one: PastRun) -> tuple[RunOutcome, dict[str, Any]]:
    """Also the failure record, {} without a failure."""
    from workloads.status.explain.endings.pod_termination import PodTermination
    from workloads.status.explain.endings.termination import explain_termination
    from workloads.status.failure_record import FailureRecord, failure_record_json
    from workloads.status.outcome import RunOutcome, stopped_outcome

    if one.outcome == "stopped":
        return stopped_outcome(was_admitted=True), {}
    if one.outcome == "succeeded":
        return RunOutcome("succeeded", "completed", "Completed with exit code 0.", 0), {}
    ended = PodTermination(node="a100-2", state_reason="Error", message=OUT_OF_GPU_MEMORY, exit_code=1)
    told = explain_termination(ended)
    return RunOutcome("failed", told.reason, told.sentence, 1), failure_record_json(FailureRecord(told))


def _spec(one: PastRun) -> LaunchSpec:
    from workloads.launch.types import LaunchSpec

    image = "JupyterLab" if one.kind == "notebook" else "PyTorch"
    if one.gpu_class.startswith("mi300x"):
        image = "PyTorch for AMD"
    command = () if one.kind == "notebook" else ("python", "train.py")
    return LaunchSpec(one.name, one.kind, one.gpu_class, one.units, image, command=command)


def move_back(by: timedelta) -> None:
    """Moves every date of the portal's rows into the past, table by table: in one transaction it would wait for the
    worker, which locks the same rows in another order.
    """
    from django.apps import apps
    from django.contrib.postgres.fields import DateTimeRangeField
    from django.db import models

    interval = "make_interval(secs => %(by_s)s)"
    for app in DATED_APPS:
        for model in apps.get_app_config(app).get_models():
            fields = model._meta.local_concrete_fields
            dates = [field.column for field in fields if isinstance(field, models.DateTimeField)]
            ranges = [field.column for field in fields if isinstance(field, DateTimeRangeField)]
            moved = [f"{column} = {column} - {interval}" for column in dates]
            moved += [
                f"{column} = tstzrange(lower({column}) - {interval}, upper({column}) - {interval}, '[)')"
                for column in ranges
            ]
            if moved:
                _move_table(model, f"UPDATE {model._meta.db_table} SET {', '.join(moved)}", by)


def _move_table(model: type[Model], update: str, by: timedelta) -> None:
    """The event log cannot be changed, but the demo owns the table and may switch its trigger off."""
    from django.db import OperationalError, connection, transaction

    from accounts.models import Event

    table = model._meta.db_table
    for is_last in (False, False, True):
        try:
            with transaction.atomic(), connection.cursor() as cursor:
                if model is Event:
                    # PostgreSQL alters no table that has deferred checks waiting, so they are made first.
                    cursor.execute(f"SET CONSTRAINTS ALL IMMEDIATE; ALTER TABLE {table} DISABLE TRIGGER USER")
                cursor.execute(update, {"by_s": by.total_seconds()})
                if model is Event:
                    cursor.execute(f"ALTER TABLE {table} ENABLE TRIGGER USER")
            return
        except OperationalError:  # a deadlock with the worker, which then goes on
            if is_last:
                raise


def _record_use() -> None:
    """Writes the hours of the past days and what each namespace used in them, computed from the runs."""
    from django.utils import timezone

    from cluster.models import Cluster
    from usage.models import UsageHour, UsageSample
    from workloads.models import Run

    this_hour = timezone.now().replace(minute=0, second=0, microsecond=0)
    begin = this_hour - timedelta(days=DAYS)
    hours = [begin + timedelta(hours=number) for number in range(DAYS * 24)]
    cluster = Cluster.objects.get()
    UsageHour.objects.bulk_create(
        [UsageHour(cluster=cluster, hour=at, minutes=60, last_minute=at + timedelta(minutes=59)) for at in hours],
        ignore_conflicts=True,
    )
    minutes: dict[tuple[int, int, datetime], list[int]] = defaultdict(lambda: [0] * 60)
    for run in Run.objects.exclude(ended_at=None).select_related("workload"):
        if run.started_at is None or run.ended_at is None:
            continue
        at, end = (one.replace(second=0, microsecond=0) for one in (run.started_at, run.ended_at))
        while at < end:
            hour = at.replace(minute=0)
            minutes[run.workload.namespace_id, run.workload.gpu_class_id, hour][at.minute] += run.total_units
            at += timedelta(minutes=1)
    UsageSample.objects.bulk_create(
        [
            UsageSample(
                namespace_id=namespace_id,
                gpu_class_id=class_id,
                hour=hour,
                units_max=max(units),
                units_sum=sum(units),
                samples=sum(1 for one in units if one),
            )
            for (namespace_id, class_id, hour), units in minutes.items()
        ],
        ignore_conflicts=True,
    )
