"""Runs of several priorities leave one node, and not all find units elsewhere: none starts to be preempted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from accounts.core.actor import Actor
from catalog.models import GpuClass
from devcluster.client.kube import Api
from devcluster.kubelet import pod_status
from devcluster.kubelet.scripted import ScriptedKubelet, runs
from operations.models import MaintenanceNode
from tenants.models import Namespace
from tests.operations.maintenance.lab import GPU, Lab, nodes_of
from tests.support.cluster.queued import WORKLOADS
from tests.support.cluster.worker import Worker
from tests.support.waiting import wait_until
from tests.workloads.cases.live import RUNNING, told
from workloads.launch import actions as launch_actions
from workloads.launch.types import LaunchSpec
from workloads.models import Run

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(300)]


def test_two_units_go_to_the_highest_priorities_at_once(
    two_nodes: dict[str, Lab], own: GpuClass, namespace_a: Namespace, job: LaunchSpec, by_alice: Actor, worker: Worker,
    admin: Api,
) -> None:  # fmt: skip
    lab, small = two_nodes.values()
    admin.patch_status("v1/nodes", small.node, {part: {GPU: "2"} for part in ("capacity", "allocatable")})
    admin.patch("v1/nodes", small.node, {"spec": {"unschedulable": True}})
    wait_until(lambda: small.state()["cordoned"])
    kubelet, name = ScriptedKubelet(admin), namespace_a.name
    with kubelet.claim(name, script=runs, stuck=True, is_silent=True) as claim:
        for one, priority in (("low-1", "batch"), ("low-2", "batch"), ("high", "interactive")):
            options = replace(job.options, priority=priority)
            spec = replace(job, name=one, gpu_class=own.slug, units=1, options=options)
            launch_actions.launch("team-a", spec, by=by_alice)
        worker(lambda: set(told().values()) == {RUNNING})
        assert set(nodes_of(admin, name).values()) == {lab.node}
        admin.patch("v1/nodes", small.node, {"spec": {"unschedulable": None}})
        lab.plan(kind="hardware", mig_config="", expected={})

        def until(condition: Callable[[], object]) -> None:
            def one_pass() -> object:
                lab.work()
                worker(lambda: True)
                return condition()

            wait_until(one_pass, within_s=50, story=lambda: f"{told()} {lab.story()}")

        def is_ending() -> bool:
            return all("deletionTimestamp" in pod["metadata"] for pod in admin.list("v1/pods", namespace=name))

        # The one with the highest priority takes the longest to end.
        until(is_ending)
        for pod in admin.list("v1/pods", namespace=name):
            if pod["metadata"]["labels"]["gpu-portal/workload"] != "high":
                pod_status.remove(admin, pod)
        until(lambda: Run.objects.filter(drained_at__isnull=False).count() == 2)
        for _pass in range(3):
            until(lambda: True)
        assert nodes_of(admin, name) == {}
        kubelet.unstick(claim)
        at_work = MaintenanceNode.objects.filter(step="changing")
        until(lambda: at_work.exists() and list(told().values()).count(RUNNING) == 2)
        assert told()["high"] == RUNNING
        assert set(nodes_of(admin, name).values()) == {small.node}
        assert Counter(evictions(admin, name)) == {"Deactivated": 3}


def evictions(admin: Api, namespace: str) -> Iterator[str]:
    """As Kueue counts them."""
    for one in admin.list(WORKLOADS, namespace=namespace):
        for found in one["status"].get("schedulingStats", {}).get("evictions", ()):
            yield from [found["reason"]] * found["count"]
