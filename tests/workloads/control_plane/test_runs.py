"""A run from launch to removal with real Kueue, scheduler, and kwok or a real JupyterLab; seen by another client."""

from __future__ import annotations

from dataclasses import replace

import pytest

from accounts.core.actor import Actor
from cluster.models import AppliedObject
from devcluster.client.kube import Api
from tenants.models import Namespace, Tenant
from tests.support.cluster.worker import Worker
from tests.workloads.cases.run_state import is_ready, is_running, named, run_of, shown
from workloads.launch import actions
from workloads.launch.types import LaunchSpec
from workloads.models import Workload
from workloads.status.types import Phase

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("provisioned", "watcher")]


def test_a_job_runs_is_stopped_and_leaves_nothing_behind(
    granted: Tenant, namespace_a: Namespace, job: LaunchSpec, by_alice: Actor, worker: Worker, admin: Api
) -> None:
    actions.launch("team-a", job, by=by_alice)
    worker(lambda: is_running("train"))

    row = shown("train")
    assert row.status.facts["node"].startswith("a100-")
    assert [step.state for step in row.steps] == ["done"] * 5
    assert named(admin, "batch/v1/jobs", namespace_a.name) == ["train-1"]
    run = run_of("train")
    assert run.admitted_at is not None
    assert run.requested_at <= run.admitted_at

    actions.stop("team-a", "train", by=by_alice)
    worker(lambda: run_of("train").ended_at)

    assert (run_of("train").outcome, run_of("train").message) == ("stopped", "Stopped.")
    assert named(admin, "batch/v1/jobs", namespace_a.name) == []
    assert named(admin, "v1/pods", namespace_a.name) == []
    assert not AppliedObject.objects.filter(owner=f"workloads.workload.{row.workload.pk}").exists()


def test_what_does_not_fit_queues_and_starts_when_something_ends(
    granted: Tenant, job: LaunchSpec, by_alice: Actor, worker: Worker
) -> None:
    actions.launch("team-a", replace(job, name="big", units=2), by=by_alice)
    worker(lambda: is_running("big"))
    actions.launch("team-a", replace(job, name="late", units=1), by=by_alice)
    worker(lambda: (status := shown("late").status).reason == "waiting_for_quota" and status.facts)

    waiting = shown("late").status
    assert waiting.phase is Phase.QUEUED
    assert waiting.sentence.startswith("Waiting for quota: 1 unit of A100 80GB whole card")
    assert waiting.facts == {"position": 1, "units": 1, "missing_units": 1, "borrowing_limit": 0}

    actions.stop("team-a", "big", by=by_alice)
    worker(lambda: is_running("late"))


def test_a_deleted_workload_takes_its_objects_along(
    granted: Tenant, namespace_a: Namespace, job: LaunchSpec, by_alice: Actor, worker: Worker, admin: Api
) -> None:
    actions.launch("team-a", job, by=by_alice)
    worker(lambda: is_running("train"))
    actions.delete("team-a", "train", by=by_alice)
    worker(lambda: Workload.objects.get(name="train").deleted_at)

    assert named(admin, "batch/v1/jobs", namespace_a.name) == []
    assert named(admin, "v1/pods", namespace_a.name) == []
    actions.launch("team-a", job, by=by_alice)  # the name is free again


def test_a_job_deleted_behind_our_back_is_a_lost_run(
    granted: Tenant, namespace_a: Namespace, job: LaunchSpec, by_alice: Actor, worker: Worker, admin: Api
) -> None:
    actions.launch("team-a", job, by=by_alice)
    worker(lambda: is_running("train"))
    admin.delete("batch/v1/jobs", "train-1", namespace=namespace_a.name)
    worker(lambda: run_of("train").ended_at)
    assert run_of("train").outcome == "lost"


def test_a_notebook_becomes_ready_and_a_stopped_one_starts_again(
    granted: Tenant, namespace_a: Namespace, notebook: LaunchSpec, by_alice: Actor, worker: Worker, admin: Api
) -> None:
    """The notebook runner starts a real JupyterLab."""
    actions.launch("team-a", notebook, by=by_alice)
    worker(lambda: is_ready("one"))
    secret = admin.get("v1/secrets", "one-1", namespace=namespace_a.name)
    assert secret["metadata"]["ownerReferences"][0]["name"] == "one-1"

    actions.stop("team-a", "one", by=by_alice)
    worker(lambda: run_of("one").ended_at, within_s=60)
    actions.start("team-a", "one", by=by_alice)
    worker(lambda: run_of("one").number == 2 and run_of("one").admitted_at)
    assert named(admin, "batch/v1/jobs", namespace_a.name) == ["one-2"]
