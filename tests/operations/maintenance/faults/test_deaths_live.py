"""Workers die at every write of a maintenance that moves a run: to the database, to the node and to the Workload."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from django.utils import timezone

from accounts.core.actor import Actor
from accounts.models import Delivery, Event
from catalog.models import GpuClass
from cluster.client.kube import Kube
from operations.maintenance import actions
from operations.models import Maintenance, MaintenanceNode, MaintenanceNotice
from portal.core import due
from tenants.models import Namespace
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


def step_now() -> str:
    return MaintenanceNode.objects.values_list("step", flat=True).get()


def summary(since: int) -> dict[str, Any]:
    """What a maintenance leaves behind, without times and keys."""
    run = Run.objects.get(workload__name="long")
    events = Event.objects.filter(pk__gt=since).exclude(verb="maintenance.step_begun")
    begun = Event.objects.filter(pk__gt=since, verb="maintenance.step_begun")
    return {
        "steps": [one.after["step"] for one in begun.order_by("pk")],
        "events": Counter(events.values_list("verb", flat=True)),
        "mails": Counter(
            (one.user.name, re.sub(r"\d.*?:|first.*|maintained-.*", "…", one.subject))
            for one in Delivery.objects.filter(event__pk__gt=since).select_related("user")
        ),
        "notices": Counter(MaintenanceNotice.objects.values_list("stage", flat=True)),
        "run": (run.number, run.outcome, run.drain_requested_at, run.drained_at, run.drain_reason),
        "outcome": Maintenance.objects.get().outcome,
    }  # fmt: skip


def test_workers_die_at_every_write_while_a_run_is_moved(
    two_nodes: dict[str, Lab], own: GpuClass, namespace_a: Namespace, job: LaunchSpec, by_alice: Actor, worker: Worker,
    kube_worker: Kube,
) -> None:  # fmt: skip
    lab = next(iter(two_nodes.values()))
    # A program that fails when it is stopped would end a Job without retries, and the portal would create another one.
    options = replace(job.options, retries=3)
    launch_actions.launch(
        "team-a", replace(job, name="long", gpu_class=own.slug, units=1, options=options), by=by_alice
    )
    worker(lambda: told()["long"] == RUNNING)
    where = lambda: nodes_of(lab.admin, namespace_a.name).get("long", "")  # noqa: E731 - read in two places

    def maintain(kube: Any, one_pass: Callable[[Lab], None]) -> dict[str, Any]:
        Maintenance.objects.all().delete()
        since = Event.objects.latest("pk").pk
        node = where()
        on = two_nodes[node]
        on.kube = kube
        row = on.plan(kind="hardware", mig_config="", expected={})
        story = on.story
        at_work = MaintenanceNode.objects.filter(problem="It waits until an operator says that the work is done.")
        wait_until(lambda: one_pass(on) or at_work.exists(), within_s=90, every_s=0.05, story=story)
        assert where() != node
        actions.confirm_maintenance(row.pk, by=on.by)
        wait_until(lambda: one_pass(on) or Maintenance.objects.get().outcome, within_s=90, every_s=0.05, story=story)
        resumed = Event.objects.filter(pk__gt=since, verb="workload.resumed")
        wait_until(lambda: one_pass(on) or resumed.exists(), within_s=90, every_s=0.05, story=story)
        for _more in range(5):
            one_pass(on)
        assert told()["long"] == RUNNING
        state = on.state()
        assert (state["cordoned"], state["held"], state["noted"]) == (False, False, False)
        return summary(since)

    def both(on: Lab, kube: Any) -> None:
        on.work()
        Workload.objects.update(due_at=timezone.now(), leased_until=None)
        while (claimed := due.claim(Workload)) is not None:
            due.run_claimed(claimed, partial(reconcile_and_restart, kube=kube))

    undisturbed = maintain(kube_worker, lambda on: both(on, kube_worker))
    deaths = Deaths(kube_worker, step_now)

    def mortal(on: Lab) -> None:
        with suppress(WorkerDied), deaths.at_work():
            both(on, deaths)

    disturbed = maintain(deaths, mortal)
    assert disturbed == undisturbed
    died_at = Counter(site.split()[0] for _step, site, _after in deaths.sites)
    # Before and after: the Workload inactive and active, the node held, cordoned and open.
    assert died_at["merge"] == 10
    assert died_at["UPDATE"] > 60
    assert died_at["INSERT"] > 20
