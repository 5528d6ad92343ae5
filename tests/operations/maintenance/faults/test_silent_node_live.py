"""A node that stops to respond in the middle of a maintenance and stays in the cluster: the real control plane finds
it unreachable, and no kubelet confirms that a pod has ended.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts.core.actor import Actor
from accounts.models import Delivery, User
from catalog.models import GpuClass
from devcluster.client.kube import STRATEGIC
from devcluster.kubelet.mig_manager import MigManager
from devcluster.kubelet.scripted import ScriptedKubelet, runs
from operations.maintenance import actions
from operations.models import Maintenance, MaintenanceNode
from portal.ui.text import date_and_time
from tenants.models import Namespace
from tests.operations.maintenance.lab import GPU, SLICE, Lab, nodes_of
from tests.support.cluster.queued import WORKLOADS
from tests.support.cluster.worker import Worker
from tests.support.waiting import wait_until
from tests.workloads.cases.live import RUNNING, told
from workloads.launch import actions as launch_actions
from workloads.launch.types import LaunchSpec
from workloads.models import Run

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("watcher"), pytest.mark.timeout(300)]
AT_WORK = "It waits until an operator says that the work is done."
HARDWARE = {"kind": "hardware", "mig_config": "", "expected": {}}
OPEN = {"cordoned": False, "held": False, "noted": False}
CLOSED = {"cordoned": True, "held": True, "noted": True}


def lose(lab: Lab) -> str:
    """The node stops to respond, and the control plane has noticed it. Returns the sentence about it."""
    ScriptedKubelet(lab.admin).node_lost(lab.node)
    wait_until(lambda: "node.kubernetes.io/unreachable" in taints(lab), within_s=30)
    [ready] = [one for one in lab.seen()["status"]["conditions"] if one["type"] == "Ready"]
    return sentence(datetime.fromisoformat(ready["lastTransitionTime"]))


def earlier(lab: Lab) -> str:
    """It has not responded for an hour."""
    since = timezone.now() - timedelta(hours=1)
    ready = {"type": "Ready", "lastTransitionTime": since.strftime("%Y-%m-%dT%H:%M:%SZ")}
    body = {"status": {"conditions": [ready]}}
    lab.admin.patch("v1/nodes", lab.node, body, subresource="status", content_type=STRATEGIC)
    return sentence(since)


def sentence(since: datetime) -> str:
    return f"The node has not responded since {date_and_time(since)}."


def come_back(lab: Lab) -> None:
    ScriptedKubelet(lab.admin).node_back(lab.node)
    wait_until(lambda: "node.kubernetes.io/unreachable" not in taints(lab), within_s=60)


def taints(lab: Lab) -> set[str]:
    return {one["key"] for one in lab.seen()["spec"].get("taints", [])}


def node() -> MaintenanceNode:
    return MaintenanceNode.objects.get()


def ended() -> str:
    return Maintenance.objects.get().outcome


def holds(lab: Lab, wanted: dict[str, bool]) -> bool:
    return {key: value for key, value in lab.state().items() if key in wanted} == wanted


def let_the_limit_pass() -> None:
    MaintenanceNode.objects.update(step_since=timezone.now() - timedelta(hours=1))


def stuck() -> list[str]:
    return list(Delivery.objects.filter(subject__endswith="is stuck").values_list("body", flat=True))


def test_a_held_node_says_that_it_does_not_respond_and_goes_on_when_it_is_back(lab: Lab) -> None:
    now = timezone.now()
    lab.plan(**HARDWARE, starts_at=now + timedelta(hours=1), stuck_minutes=1)
    lab.until(lambda: node().step == "held")
    let_the_limit_pass()
    lab.work()
    said = lose(lab)
    lab.until(lambda: node().problem == said)
    assert stuck() == [], "it was held for longer, and has not responded for seconds"
    said = earlier(lab)
    lab.until(lambda: node().problem == said)
    [body] = stuck()
    assert body.startswith(f"{lab.node}: held. {said}")
    assert holds(lab, {"cordoned": False, "held": True, "noted": True})

    come_back(lab)
    lab.until(lambda: not node().problem)
    assert not node().is_stuck
    Maintenance.objects.update(starts_at=timezone.now())
    lab.until(lambda: node().problem == AT_WORK)


def test_a_change_by_hand_waits_until_the_node_responds_again(lab: Lab) -> None:
    row = lab.plan(**HARDWARE)
    lab.until(lambda: node().problem == AT_WORK)
    said = lose(lab)
    lab.until(lambda: node().problem == f"{said} {AT_WORK}")
    actions.confirm_maintenance(row.pk, by=lab.by)
    lab.until(lambda: (node().step, node().problem) == ("verifying", said))
    let_the_limit_pass()
    lab.until(stuck)
    assert stuck()[0].startswith(f"{lab.node}: verifying. {said}")
    assert holds(lab, CLOSED)
    come_back(lab)
    lab.until(ended)
    assert ended() == "done"
    assert holds(lab, OPEN)


@pytest.mark.parametrize("is_canceled", [False, True])
def test_a_layout_is_applied_when_the_node_is_back(lab: Lab, manager: MigManager, is_canceled: bool) -> None:
    """Canceled, it waits in the same way for the layout of before."""
    row = lab.plan(starts_at=timezone.now() + timedelta(hours=1))
    lab.until(lambda: node().step == "held")
    said = lose(lab)
    Maintenance.objects.update(starts_at=timezone.now())
    lab.until(lambda: node().step == "waiting")
    silent = f"{said} The MIG manager has not responded; the layout is not applied yet."
    lab.until(lambda: node().problem == silent)
    if is_canceled:
        actions.cancel_maintenance(row.pk, by=lab.by)
        lab.until(lambda: node().is_going_back and node().problem == silent)
    let_the_limit_pass()
    lab.until(stuck)
    assert holds(lab, CLOSED)
    assert lab.state()["devices"] == {GPU: 4}, "what it reported last"
    come_back(lab)
    lab.until(ended)
    config, devices = ("all-disabled", {GPU: 4}) if is_canceled else ("all-1g.10gb", {SLICE: 28})
    assert ended() == ("canceled" if is_canceled else "done")
    assert holds(lab, OPEN)
    assert (lab.state()["config"], lab.state()["devices"]) == (config, devices)


@pytest.mark.parametrize("end", ["is back", "is canceled", "is given up"])
def test_a_run_is_queued_again_only_when_its_end_is_certain(
    two_nodes: dict[str, Lab], own: GpuClass, namespace_a: Namespace, job: LaunchSpec, by_alice: Actor, worker: Worker,
    client: Client, olga: User, end: str,
) -> None:  # fmt: skip
    spec = replace(job, gpu_class=own.slug, units=2)
    kubelet = ScriptedKubelet(next(iter(two_nodes.values())).admin)
    with kubelet.claim(namespace_a.name, script=runs, stuck=True, is_silent=True) as claim:
        launch_actions.launch("team-a", replace(spec, name="long"), by=by_alice)
        worker(lambda: told()["long"] == RUNNING)
        admin = kubelet.api
        lab = two_nodes[nodes_of(admin, namespace_a.name)["long"]]
        [other] = set(two_nodes) - {lab.node}
        row = lab.plan(**HARDWARE, starts_at=timezone.now() + timedelta(hours=1))
        lab.until(lambda: node().step == "held")
        said = lose(lab)
        Maintenance.objects.update(starts_at=timezone.now())

        unknown = f"{said} Whether 1 workload (team-a/long) still runs there is unknown."
        both(lab, worker, lambda: node().problem == unknown)
        both(lab, worker, lambda: told()["long"] == ("unknown", "node_given_up"))
        [queued] = admin.list(WORKLOADS, namespace=namespace_a.name)
        assert queued["spec"]["active"] is False
        let_the_limit_pass()
        both(lab, worker, lambda: stuck() != [])
        [body] = stuck()
        assert unknown in body
        assert "node.kubernetes.io/out-of-service=nodeshutdown:NoExecute" in body
        client.force_login(olga)
        assert unknown in client.get(reverse("maintenance", args=[row.pk])).content.decode()
        launch_actions.launch("team-a", replace(spec, name="late"), by=by_alice)
        both(lab, worker, lambda: told()["late"] == RUNNING)
        assert nodes_of(admin, namespace_a.name) == {"late": other}, "others start where units are free"
        for _pass in range(3):
            both(lab, worker, lambda: True)
            assert (Run.objects.get(workload__name="long").drained_at, node().step) == (None, "draining")
        assert holds(lab, CLOSED)

        if end == "is canceled":
            actions.cancel_maintenance(row.pk, by=lab.by)
            both(lab, worker, lambda: ended() == "canceled")
            assert holds(lab, OPEN)
            assert told()["long"] == ("unknown", "node_given_up")
            come_back(lab)
            kubelet.unstick(claim)
        elif end == "is given up":
            out = {"key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown", "effect": "NoExecute"}
            admin.patch("v1/nodes", lab.node, {"spec": {"taints": [*lab.seen()["spec"]["taints"], out]}})
        else:
            come_back(lab)
            kubelet.unstick(claim)
        both(lab, worker, lambda: told()["long"] == RUNNING, within_s=90)
        assert nodes_of(admin, namespace_a.name)["late"] == other
        run = Run.objects.get(workload__name="long")
        assert (run.drain_requested_at, run.drain_reason) == (None, "")
        if end != "is canceled":
            both(lab, worker, lambda: AT_WORK in node().problem)
            assert nodes_of(admin, namespace_a.name)["long"] == other


def both(lab: Lab, worker: Worker, condition: Callable[[], bool], within_s: float = 60) -> None:
    def one_pass() -> bool:
        lab.work()
        worker(lambda: True)
        return condition()

    wait_until(one_pass, within_s=within_s, story=lambda: f"{told()} {lab.story()}")
