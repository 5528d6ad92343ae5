"""What users with work on a class see when the class is held or retired, on the real control plane."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from accounts.core.actor import Actor, system_actor
from accounts.models import User
from catalog.classes import actions as catalog
from catalog.models import GpuClass, Pool
from cluster.client.kube import Kube
from portal.core.due import Deadline
from portal.core.errors import Refused
from tenants.models import Namespace, Tenant
from tenants.provisioning import reconcile as tenants
from tests.support.cluster.worker import Worker
from tests.workloads.cases.live import is_open
from tests.workloads.cases.run_state import is_running, run_of, shown
from tests.workloads.cases.situations import as_written
from tests.workloads.cases.situations_queue import IN_QUEUE
from tests.workloads.cases.steps_followed import help_of
from workloads.launch import actions
from workloads.launch.types import LaunchSpec
from workloads.models import Run, Workload
from workloads.runs.reconcile import reconcile
from workloads.status.types import Phase

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("provisioned", "watcher")]
BY = system_actor("test")


def test_who_waits_for_a_held_class_reads_since_when_for_what_and_until_when(
    granted: Tenant,
    a100: GpuClass,
    job: LaunchSpec,
    alice: User,
    by_alice: Actor,
    worker: Worker,
    kube_worker: Kube,
    namespace_a: Namespace,
) -> None:
    until = timezone.now() + timedelta(days=2)
    catalog.hold_class(a100.pk, reason="a driver update", until=until, by=BY)
    tenants.reconcile_pool(Pool.objects.get(), Deadline(), kube=kube_worker)
    actions.launch("team-a", job, by=by_alice)
    worker(lambda: shown("train").status.reason == "class_held")
    as_written(IN_QUEUE["class held"], shown("train").status, help_of(by_alice, "train"))
    assert a100.name in shown("train").status.sentence
    client = Client()
    client.force_login(alice)
    for page in ("/teams/team-a", "/teams/team-a/workloads", "/teams/team-a/workloads/train"):
        assert "for a driver update; expected to resume at" in client.get(page).content.decode(), page
    catalog.release_class(a100.pk, by=BY)
    tenants.reconcile_pool(Pool.objects.get(), Deadline(), kube=kube_worker)
    # Kueue tries a queue again when the queue changes, not when a flavor does.
    worker(lambda: is_open(namespace_a, kube_worker) and is_running("train"))


def test_what_runs_on_a_retiring_class_goes_on_until_its_date_and_then_ends_with_its_reason(
    granted: Tenant, a100: GpuClass, job: LaunchSpec, alice: User, by_alice: Actor, worker: Worker, kube_worker: Kube
) -> None:
    actions.launch("team-a", replace(job, name="runs", units=2), by=by_alice)
    actions.launch("team-a", replace(job, name="waits"), by=by_alice)
    worker(lambda: is_running("runs") and shown("waits").status.phase is Phase.QUEUED)
    until = timezone.now() + timedelta(days=30)
    catalog.retire_class(a100.pk, successor="", message="", runs_until=until, by=BY)
    outcome = reconcile(Workload.objects.get(name="runs"), Deadline(), kube=kube_worker)
    assert outcome.clock == until, "the row is due then, however rarely it is looked at"
    assert run_of("runs").ended_at is None
    client = Client()
    client.force_login(alice)
    assert (
        "is being retired. Running workloads may continue until"
        in client.get("/teams/team-a/workloads/runs").content.decode()
    )
    granted.grants.all().delete()
    with pytest.raises(Refused, match="cannot be closed yet: 2 runs not ended"):
        catalog.move_class(a100.pk, to="retired", by=BY)

    over = timezone.now() - timedelta(seconds=1)
    GpuClass.objects.filter(pk=a100.pk).update(runs_until=over)
    Workload.objects.update(due_at=over)
    worker(lambda: not Run.objects.filter(ended_at=None).exists(), within_s=60)
    for name, told in (("runs", "was retired"), ("waits", "It had not started.")):
        assert (run_of(name).outcome, run_of(name).reason) == ("stopped", "class_retired")
        assert told in run_of(name).message
