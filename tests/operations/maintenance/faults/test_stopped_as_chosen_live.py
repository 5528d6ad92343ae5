"""Workers die at every write of a drain that stops a run, as its people chose, on the real Kueue."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import partial

import pytest
from django.utils import timezone

from accounts.core.actor import Actor
from accounts.models import Delivery, Event
from catalog.models import GpuClass
from cluster.client.kube import Kube
from operations.maintenance.choices.actions import choose_at_drain
from operations.models import Maintenance, MaintenanceNode, MaintenanceNotice
from portal.core import due
from tenants.models import Namespace
from tests.operations.maintenance.faults.test_deaths_live import step_now
from tests.operations.maintenance.lab import Lab, nodes_of
from tests.support.cluster.worker import Worker
from tests.support.processes.deaths import Deaths, WorkerDied
from tests.support.waiting import wait_until
from tests.workloads.cases.live import RUNNING, told
from workloads.launch import actions as launch_actions
from workloads.launch.types import LaunchSpec
from workloads.models import Run, Workload
from workloads.runs.restart import reconcile_and_restart

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(300)]


def test_it_ends_once_and_does_not_start_again(
    two_nodes: dict[str, Lab], own: GpuClass, namespace_a: Namespace, job: LaunchSpec, by_alice: Actor, worker: Worker,
    kube_worker: Kube,
) -> None:  # fmt: skip
    lab = next(iter(two_nodes.values()))
    launch_actions.launch("team-a", replace(job, name="long", gpu_class=own.slug, units=1), by=by_alice)
    worker(lambda: told()["long"] == RUNNING)
    on = two_nodes[nodes_of(lab.admin, namespace_a.name)["long"]]
    row = on.plan(kind="hardware", mig_config="", expected={})
    choose_at_drain("team-a", "long", row.pk, "stop", by=by_alice)
    deaths = Deaths(kube_worker, step_now)
    on.kube = deaths

    def mortal() -> None:
        with suppress(WorkerDied), deaths.at_work():
            on.work()
            Workload.objects.update(due_at=timezone.now(), leased_until=None)
            while (claimed := due.claim(Workload)) is not None:
                due.run_claimed(claimed, partial(reconcile_and_restart, kube=deaths))

    at_work = MaintenanceNode.objects.filter(problem="It waits until an operator says that the work is done.")
    ended = Run.objects.filter(ended_at__isnull=False)
    wait_until(lambda: mortal() or (at_work.exists() and ended.exists()), within_s=120, every_s=0.05, story=on.story)
    for _more in range(5):
        mortal()
    run = Run.objects.get()
    assert (run.number, run.outcome, run.reason) == (1, "stopped", "stopped_for_maintenance")
    assert f"Maintenance of node {on.node}: more slices." in run.message
    assert (run.drain_requested_at, run.drained_at) == (None, None)
    assert nodes_of(on.admin, namespace_a.name) == {}
    assert Event.objects.filter(verb="workload.drain_stopped").count() == 1
    assert Delivery.objects.filter(event__verb="workload.drain_stopped").count() == 1
    assert not MaintenanceNotice.objects.filter(stage="moved").exists()
    assert Maintenance.objects.get().outcome == ""
    assert sum(deaths.sites.values()) > 40
