"""A closed team: the portal has stopped its runs, and no row is retried for ever."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from django.db.models.functions import Now

from accounts.core.actor import Actor
from cluster.client.kube import Kube
from devcluster.client.kube import Api
from portal.core.due import Deadline
from tenants.models import Namespace, Tenant
from tenants.provisioning import steps
from tests.support.cluster.worker import Worker
from tests.support.rows import make
from tests.workloads.cases.run_state import is_running, run_of
from workloads.launch import actions
from workloads.launch.types import LaunchSpec
from workloads.models import Run, Workload
from workloads.runs.reconcile import reconcile

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("provisioned", "watcher")]


def test_what_runs_waits_or_was_not_sent_yet_is_stopped_and_rests(
    granted: Tenant,
    namespace_a: Namespace,
    job: LaunchSpec,
    by_alice: Actor,
    worker: Worker,
    kube_worker: Kube,
    admin: Api,
) -> None:
    actions.launch("team-a", replace(job, name="runs", units=2), by=by_alice)
    actions.launch("team-a", replace(job, name="waits"), by=by_alice)
    worker(lambda: is_running("runs"))
    actions.launch("team-a", replace(job, name="unsent"), by=by_alice)
    Workload.objects.filter(name="unsent").update(due_at=None)

    # During the grace nothing is stopped; the next look at a run is due when the grace is over.
    make.close(runs_for=timedelta(minutes=1))
    namespace_a.refresh_from_db()
    runs = Workload.objects.get(name="runs")
    assert reconcile(runs, Deadline(), kube=kube_worker).clock == namespace_a.closes_at
    assert run_of("runs").ended_at is None
    assert admin.find("batch/v1/jobs", "runs-1", namespace=namespace_a.name)

    make.close()

    def is_closed() -> bool:
        namespace_a.refresh_from_db()
        steps.work_on_namespace(namespace_a, Deadline(), kube=kube_worker)
        return admin.find("v1/namespaces", namespace_a.name) is None

    worker(is_closed, within_s=60)
    Workload.objects.filter(name="unsent").update(due_at=Now())
    worker(lambda: not Run.objects.filter(ended_at=None).exists(), within_s=60)

    ends = {name: run_of(name) for name in ("runs", "waits", "unsent")}
    assert {(end.outcome, end.reason) for end in ends.values()} == {("stopped", "team_closed")}
    not_started = "The team was closed. It had not started."
    assert {name: end.message for name, end in ends.items()} == {
        "runs": "The team was closed.",
        "waits": not_started,
        "unsent": not_started,
    }
    worker(lambda: not Workload.objects.exclude(due_at=None).exists())
    assert not Workload.objects.exclude(error_code="").exists()
