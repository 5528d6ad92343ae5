"""Operations on a run and its volume."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from catalog.models import GpuClass
from tests.faults.crashes.operations.common import (
    TEAM,
    Team,
    api,
    look,
    mails_are_sent,
    provisioned,
    quiet,
)
from tests.faults.crashes.types import Ground, Operation, Place
from tests.support.waiting import wait_until
from tests.usage.idle import rows as idle_rows
from usage.idle.models import IdleRun
from usage.idle.verdicts import update_idle_runs
from workloads.models import Run, Volume
from workloads.storage.policy import GRACE

JOB = {"name": "train", "kind": "job", "units": 1, "image": "python", "command": ["python", "train.py"]}
NOTEBOOK = {"name": "train", "kind": "notebook", "units": 1, "image": "minimal"}


def launch(place: Place) -> None:
    api(place, "alice", f"workloads?team={TEAM}", place.known["body"])


def is_running(number: int = 1) -> bool:
    run = Run.objects.filter(workload__name="train").latest("number")
    begun = run.ready_at if run.workload.kind == "notebook" else run.started_at
    return bool(run.number == number and run.admitted_at and begun and mails_are_sent())


def ready_to_launch(ground: Ground, place: Place, **body: Any) -> dict[str, Any]:
    found = provisioned(ground, place)
    look(ground, place)
    return known(found, **(body or JOB))


def known(found: Team, **body: Any) -> dict[str, Any]:
    return {"tokens": found.tokens(), "body": {**body, "gpu_class": found.gpu_class.slug}}


def running(ground: Ground, place: Place, **body: Any) -> dict[str, Any]:
    """A run that was launched and runs."""
    known = ready_to_launch(ground, place, **body)
    there = Place(place.name, place.kubeconfig, place.directory, known)
    ground.call("launch", there)

    def is_there() -> bool:
        ground.work(there)
        quiet(ground, there)
        return is_running()

    wait_until(is_there, within_s=60, every_s=0.05, what="it runs")
    return known


def stop(place: Place) -> None:
    api(place, "alice", f"workloads/train/stop?team={TEAM}", done={"not_running", "nothing_runs", "already_stopped"})


def has_ended(ground: Ground, place: Place) -> bool:
    return not Run.objects.filter(ended_at=None).exists() and mails_are_sent()


# ---- a notebook loses its node -----------------------------------------------------------------------------------


def evicted(ground: Ground, place: Place) -> dict[str, Any]:
    known = running(ground, place, **NOTEBOOK)
    for pod in ground.admin.list("v1/pods", namespace=place.name):
        name = pod["metadata"]["name"]
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": place.name}}
        ground.admin.request("POST", f"/api/v1/namespaces/{place.name}/pods/{name}/eviction", body)
    look(ground, place)
    return known


def nothing(place: Place) -> None:
    """The operation is not called by anybody: workers find it."""


# ---- idle GPUs -----------------------------------------------------------------------------------------------------


def idle(ground: Ground, place: Place) -> dict[str, Any]:
    """Its users were warned, in three hours; the countdown is over in another three."""
    known = running(ground, place)
    run = Run.objects.select_related("workload__gpu_class__cluster").get()
    GpuClass.objects.update(idle_action="stop", idle_minutes=60)
    since = timezone.now().replace(second=0, microsecond=0)
    warned, over = since + timedelta(hours=3), since + timedelta(hours=6)
    idle_rows.measured(run, since, over)
    idle_rows.read(run.workload.gpu_class.cluster, warned)
    update_idle_runs(at=warned)
    assert IdleRun.objects.get().stops_at is not None
    idle_rows.read(run.workload.gpu_class.cluster, over)
    return {**known, "over": over.isoformat()}


def judge(place: Place) -> None:
    update_idle_runs(at=datetime.fromisoformat(place.known["over"]))


# ---- a volume ------------------------------------------------------------------------------------------------------


def with_volume(ground: Ground, place: Place) -> dict[str, Any]:
    """A volume that a run created; the run has ended."""
    known = running(ground, place, **{**JOB, "volume": "data"})
    there = Place(place.name, place.kubeconfig, place.directory, known)
    ground.call("stop", there)

    def is_over() -> bool:
        ground.work(there)
        quiet(ground, there)
        return has_ended(ground, there)

    wait_until(is_over, within_s=60, every_s=0.05, what="it has ended")
    return known


def delete_volume(place: Place) -> None:
    api(place, "alice", f"volumes/data/delete?team={TEAM}")


def a_day_passes(ground: Ground, place: Place) -> None:
    quiet(ground, place)
    Volume.objects.exclude(delete_requested_at=None).update(delete_requested_at=timezone.now() - GRACE)
    Volume.objects.exclude(delete_requested_at=None).filter(gone_at=None).update(due_at=timezone.now())


def is_gone(ground: Ground, place: Place) -> bool:
    return Volume.objects.get().gone_at is not None


OPERATIONS: dict[str, Operation] = {
    "launch": Operation(ready_to_launch, launch, lambda ground, place: Run.objects.exists() and is_running(), quiet),
    "stop": Operation(running, stop, has_ended, quiet),
    "requeue": Operation(evicted, nothing, lambda ground, place: is_running(2), quiet),
    "idle stop": Operation(idle, judge, has_ended, quiet),
    "volume delete": Operation(with_volume, delete_volume, is_gone, a_day_passes),
}
