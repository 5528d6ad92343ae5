"""What maintenance does to runs, on the real Kueue: told with lead time, moved at the start, nothing new meanwhile."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from django.utils import timezone

from accounts.core.actor import Actor
from accounts.models import Delivery
from catalog.models import GpuClass
from devcluster.client.kube import Api
from operations.maintenance import actions
from operations.models import Maintenance, MaintenanceNode, MaintenanceNotice
from tenants.models import Namespace
from tests.operations.maintenance.lab import Lab, nodes_of
from tests.support.cluster.worker import Worker
from tests.support.waiting import wait_until
from tests.workloads.cases.live import RUNNING, told
from workloads.launch import actions as launch_actions
from workloads.launch.types import LaunchSpec
from workloads.models import Run

pytestmark = pytest.mark.django_db(transaction=True)


def mails(name: str) -> list[str]:
    return list(Delivery.objects.filter(user__name=name).order_by("pk").values_list("subject", flat=True))


def bodies(name: str) -> list[str]:
    return list(Delivery.objects.filter(user__name=name).order_by("pk").values_list("body", flat=True))


def test_a_run_is_told_reminded_moved_and_comes_first_when_the_node_is_back(
    two_nodes: dict[str, Lab], own: GpuClass, namespace_a: Namespace, job: LaunchSpec, by_alice: Actor, worker: Worker,
    admin: Api,
) -> None:  # fmt: skip
    spec = replace(job, gpu_class=own.slug, units=4)
    launch_actions.launch("team-a", replace(spec, name="long"), by=by_alice)
    worker(lambda: told()["long"] == RUNNING)
    lab = two_nodes[nodes_of(admin, namespace_a.name)["long"]]
    now = timezone.now()
    row = lab.plan(
        kind="hardware", reason="a broken fan", mig_config="", expected={}, holds_from=now + timedelta(hours=4),
        starts_at=now + timedelta(hours=5), ends_at=now + timedelta(hours=6),
    )  # fmt: skip

    for _twice in range(2):
        lab.work()
    [announced] = mails("Alice")
    assert announced.endswith("long of Team A")
    [body] = bodies("Alice")
    assert f"long runs on {lab.node}." in body
    assert "a broken fan." in body
    assert "It is moved off the node at" in body
    assert "restarts automatically from the beginning: no checkpointing is declared." in body
    assert not lab.state()["held"]

    MaintenanceNotice.objects.update(told_at=now - timedelta(hours=9))
    Maintenance.objects.filter(pk=row.pk).update(holds_from=now, starts_at=now + timedelta(minutes=50))
    lab.until(lambda: lab.state()["held"])
    assert not lab.state()["cordoned"]
    lab.work()
    assert len(mails("Alice")) == 2, "announced, and reminded once"
    launch_actions.launch("team-a", replace(spec, name="late"), by=by_alice)
    worker(lambda: told()["late"] == RUNNING)
    assert nodes_of(admin, namespace_a.name)["late"] != lab.node
    launch_actions.launch("team-a", replace(spec, name="third"), by=by_alice)
    worker(lambda: told()["third"][0] == "queued")
    assert nodes_of(admin, namespace_a.name)["long"] == lab.node, "what runs there goes on until the start"

    Maintenance.objects.filter(pk=row.pk).update(starts_at=timezone.now())
    at_work = "It waits until an operator says that the work is done."
    started = []

    def meanwhile() -> None:
        found = nodes_of(admin, namespace_a.name)
        started.extend(name for name, node in found.items() if node == lab.node and name != "long")

    wait_until(
        lambda: _both(lab, worker) or MaintenanceNode.objects.get().problem == at_work, within_s=60, story=lab.story
    )
    for _pass in range(3):
        _both(lab, worker)
        meanwhile()
    assert started == []
    assert told()["long"][0] == "queued"
    assert lab.node not in nodes_of(admin, namespace_a.name).values()
    [*_before, moved] = bodies("Alice")
    assert f"its node is in maintenance. Maintenance of node {lab.node}: a broken fan." in moved
    assert len(mails("Alice")) == 3

    actions.confirm_maintenance(row.pk, by=lab.by)
    wait_until(lambda: _both(lab, worker) or told()["long"] == RUNNING, within_s=60, story=lab.story)
    assert nodes_of(admin, namespace_a.name)["long"] == lab.node
    assert told()["third"][0] == "queued", "it was queued later"
    lab.until(lambda: Maintenance.objects.get().outcome)
    assert Maintenance.objects.get().outcome == "done"
    assert mails("Olga") == [f"Maintenance done: {lab.node}"]


def _both(lab: Lab, worker: Worker) -> bool:
    lab.work()
    worker(lambda: True)
    return False


def test_a_run_that_ends_before_is_told_so_and_a_canceled_maintenance_too(
    two_nodes: dict[str, Lab], own: GpuClass, namespace_a: Namespace, job: LaunchSpec, by_alice: Actor, worker: Worker,
    admin: Api,
) -> None:  # fmt: skip
    options = replace(job.options, run_hours=1)
    launch_actions.launch(
        "team-a", replace(job, gpu_class=own.slug, units=1, name="short", options=options), by=by_alice
    )
    # The mirror shows the running pod a moment before the worker writes the end of its time limit.
    worker(lambda: told()["short"] == RUNNING and Run.objects.get().ends_at is not None)
    lab = two_nodes[nodes_of(admin, namespace_a.name)["short"]]
    now = timezone.now()
    soon = {"holds_from": now + timedelta(hours=2), "starts_at": now + timedelta(hours=3)}
    row = lab.plan(kind="driver", mig_config="", expected={}, **soon, ends_at=now + timedelta(hours=4))
    lab.work()
    [body] = bodies("Alice")
    assert "before the maintenance: it is not interrupted." in body
    actions.cancel_maintenance(row.pk, by=lab.by)
    lab.until(lambda: Maintenance.objects.get().outcome)
    assert Maintenance.objects.get().outcome == "canceled"
    assert [one.partition(":")[0] for one in mails("Alice")][1:] == ["Maintenance canceled"]
    assert lab.state()["held"] is False
    assert told()["short"] == RUNNING
