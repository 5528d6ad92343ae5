"""A stale mirror proves nothing: an object that it does not show may exist."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db.models import F
from django.db.models.functions import Now

from accounts.core.actor import Actor
from cluster.mirror.writer import MirrorWriter
from cluster.models import AppliedObject, Cluster, MirrorEpoch
from cluster.reads import queries as mirror_of
from tenants.models import Tenant
from tests.support.cluster.worker import Worker
from tests.support.processes.preloaded import watch
from tests.support.rows import mirrored
from tests.support.waiting import wait_until
from tests.workloads.cases.run_state import is_running, run_of, shown
from tests.workloads.cases.situations import as_written
from tests.workloads.cases.situations_queue import IN_QUEUE
from tests.workloads.cases.steps_followed import help_of
from workloads.launch import actions
from workloads.launch.types import LaunchSpec
from workloads.models import Workload
from workloads.status.queries import WORKLOAD_KINDS
from workloads.status.types import Phase

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def mirror(cluster: Cluster) -> MirrorWriter:
    """All kinds are listed; the mirror receives no later changes."""
    return mirrored.seen(cluster)


def later(seconds: int) -> None:
    """Simulates that this time has passed: all rows of the run are older, and the workload is due."""
    AppliedObject.objects.update(sent_at=F("sent_at") - timedelta(seconds=seconds))
    MirrorEpoch.objects.update(beat_at=F("beat_at") - timedelta(seconds=seconds))
    Workload.objects.update(due_at=Now())


@pytest.mark.usefixtures("provisioned")
@pytest.mark.parametrize("age_s", [5, 60], ids=["since-the-last-beat", "for-long"])
def test_units_are_not_given_back_on_the_word_of_a_watcher_that_is_away(
    job: LaunchSpec, by_alice: Actor, worker: Worker, mirror: MirrorWriter, age_s: int
) -> None:
    """The mirror never had its Job and pod; the pod may still be terminating on its node."""
    actions.launch("team-a", job, by=by_alice)
    worker(lambda: AppliedObject.objects.filter(kind="Job", result="applied").exists())
    actions.stop("team-a", "train", by=by_alice)
    worker(lambda: AppliedObject.objects.filter(kind="Job", result="terminating").exists())

    MirrorEpoch.objects.update(beat_at=F("beat_at") - timedelta(seconds=10))
    later(age_s)
    worker(lambda: Workload.objects.filter(due_at__gt=Now()).exists())
    assert run_of("train").ended_at is None

    mirror.beat()
    later(0)
    worker(lambda: run_of("train").outcome == "stopped")


@pytest.mark.usefixtures("provisioned")
def test_what_takes_long_to_end_is_asked_less_often(
    job: LaunchSpec, by_alice: Actor, worker: Worker, mirror: MirrorWriter
) -> None:
    """A lost node keeps its pods for hours; the watcher reports when they are gone."""
    actions.launch("team-a", job, by=by_alice)
    worker(lambda: AppliedObject.objects.filter(kind="Job", result="applied").exists())
    actions.stop("team-a", "train", by=by_alice)
    worker(lambda: AppliedObject.objects.filter(kind="Job", result="terminating").exists())
    assert Workload.objects.filter(due_at__lt=Now() + timedelta(seconds=3)).exists()

    later(600)
    worker(lambda: Workload.objects.filter(due_at__gt=Now()).exists())
    assert Workload.objects.filter(due_at__gt=Now() + timedelta(seconds=30)).exists()


def test_what_became_of_an_earlier_runs_job_is_not_said_of_this_one(
    granted: Tenant, job: LaunchSpec, by_alice: Actor, cluster: Cluster, mirror: MirrorWriter
) -> None:
    """A finished Job is kept for its log; the next run has no Job yet."""
    workload = actions.launch("team-a", job, by=by_alice)
    run_of("train").__class__.objects.update(number=2)
    AppliedObject.objects.create(
        cluster=cluster,
        owner=f"workloads.workload.{workload.pk}",
        kind="Job",
        namespace=workload.namespace.name,
        name="train-1",
        uid="1",
        result="applied",
        sent_at=Now() - timedelta(minutes=50),
    )

    assert (shown("train").status.phase, shown("train").status.reason) == (Phase.QUEUED, "requested")


def test_a_run_that_the_watcher_never_saw_is_not_called_gone(
    provisioned: Tenant, job: LaunchSpec, by_alice: Actor, worker: Worker, cluster: Cluster, services: dict[str, Any],
    tmp_path: Path,
) -> None:  # fmt: skip
    """The watcher dies during one run; the next run is launched nevertheless, and is seen when the watcher is back."""
    with a_watcher(cluster, services, tmp_path):
        actions.launch("team-a", job, by=by_alice)
        worker(lambda: is_running("train"))
    MirrorEpoch.objects.update(beat_at=F("beat_at") - timedelta(seconds=60))
    actions.launch("team-a", replace(job, name="late"), by=by_alice)
    worker(lambda: shown("late").status.reason == "mirror_stale")
    as_written(IN_QUEUE["stale mirror"], shown("late").status, help_of(by_alice, "late"))
    assert (shown("train").status.phase, shown("train").as_of.is_current) == (Phase.RUNNING, False)

    with a_watcher(cluster, services, tmp_path):
        worker(lambda: is_running("late"))


@contextmanager
def a_watcher(cluster: Cluster, services: dict[str, Any], folder: Path) -> Iterator[None]:
    log = folder / "watcher.log"
    process = watch(kubeconfig=services["kubeconfigs"]["watcher"], log=log)
    try:
        wait_until(lambda: mirror_of.as_of(cluster.pk, *WORKLOAD_KINDS).is_current, story=log.read_text)
        yield
    finally:
        process.kill()
        process.wait(10)
