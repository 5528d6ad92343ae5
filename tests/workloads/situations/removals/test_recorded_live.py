"""Pods that the Job controller replaces before the portal looks, on the real control plane: what happened to them is
recorded all the same, once each, with its reason.

API server, scheduler, taint eviction, Job controller and Kueue are real; the test scripts the kubelets.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from django.utils import timezone

from accounts.core.actor import Actor
from accounts.models import Delivery, Event
from catalog.models import GpuClass
from cluster.client.kube import Kube
from devcluster.client.kube import Api
from devcluster.client.types import Json
from devcluster.kubelet.scripted import ScriptedKubelet, runs
from tenants.models import Namespace, Tenant
from tests.support.cluster.worker import Worker, provision
from tests.support.rows import make
from tests.support.waiting import wait_until
from tests.workloads.cases.live import told
from tests.workloads.situations.removals.test_removed_live import CLEARED, SYSTEM, TAINT, critical, evict, six
from workloads.launch import actions
from workloads.launch.options import Options
from workloads.launch.types import LaunchSpec
from workloads.models import Workload

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("watcher")]
# A fixture of another module, by name.
__all__ = ["six"]


def pods_of(admin: Api, space: str) -> dict[str, list[Json]]:
    found: dict[str, list[Json]] = defaultdict(list)
    for pod in admin.list("v1/pods", namespace=space):
        found[pod["metadata"]["labels"]["gpu-portal/workload"]].append(pod)
    return found


def running(pods: list[Json]) -> set[str]:
    return {pod["metadata"]["uid"] for pod in pods if pod["status"]["phase"] == "Running"}


def interruptions() -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    names = {f"workloads.workload.{one.pk}": one.name for one in Workload.objects.all()}
    for event in Event.objects.filter(verb="workload.interrupted").order_by("pk"):
        found[names[event.row]].append(event.after["reason"])
    return found


def test_removals_that_were_over_when_the_worker_looked(
    six: GpuClass, team_a: Tenant, namespace_a: Namespace, kube_worker: Kube, clean_cluster: None, job: LaunchSpec,
    by_alice: Actor, worker: Worker, admin: Api, unique: str,
) -> None:  # fmt: skip
    make.grant(team_a, six, units=6)
    provision(namespace_a, kube_worker)
    space, kubelet = namespace_a.name, ScriptedKubelet(admin)
    wanted = replace(job, gpu_class=six.slug, options=Options(checkpoints=True))
    causes = {
        "drained": ["drained"], "yields": ["preempted_on_node"], "cleared": ["drained"], "gang": ["drained"] * 2
    }  # fmt: skip
    with kubelet.claim(space, script=runs):
        for name in causes:
            options = replace(wanted.options, workers=2 if name == "gang" else None)
            actions.launch("team-a", replace(wanted, name=name, options=options), by=by_alice)
        worker(lambda: {name: status[0] for name, status in told().items()} == dict.fromkeys(causes, "running"))
        before, since = pods_of(admin, space), timezone.now() - timedelta(seconds=1)
        old = {name: running(pods) for name, pods in before.items()}

        # From here on nobody looks, until all of them are gone and others run in their place.
        for pod in (*before["drained"], *before["gang"]):
            evict(admin, pod)
        admin.create(critical(before["yields"][0]["spec"]["nodeName"], unique))
        node = before["cleared"][0]["spec"]["nodeName"]
        admin.patch("v1/nodes", node, {"spec": {"taints": [TAINT, CLEARED]}})
        uids = {uid for some in old.values() for uid in some}
        wait_until(
            lambda: not uids & {pod["metadata"]["uid"] for some in pods_of(admin, space).values() for pod in some}
        )
        admin.delete("v1/pods", f"critical-{unique}", namespace=SYSTEM, grace_s=0)
        admin.patch("v1/nodes", node, {"spec": {"taints": [TAINT]}})
        wait_until(
            lambda: (
                {name: len(running(pods)) for name, pods in pods_of(admin, space).items()}
                == {name: len(some) for name, some in old.items()}
            )
        )

        worker(lambda: interruptions() == causes)
        worker(lambda: Event.objects.filter(verb="workload.resumed").count() == len(causes))
        assert {name: status[0] for name, status in told().items()} == dict.fromkeys(causes, "running")
        assert interruptions() == causes, "a later look tells none again"
        events = Event.objects.filter(verb="workload.interrupted")
        assert all(since <= datetime.fromisoformat(one.after["at"]) <= timezone.now() for one in events)
        assert sorted(one.after["times"] for one in events) == [1, 1, 1, 1, 2]
        assert Delivery.objects.filter(subject__endswith="was interrupted").count() == len(events)
