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
from cluster.reads.observed import Pod
from devcluster.client.kube import Api
from devcluster.client.types import Json
from devcluster.kubelet import pod_status
from devcluster.kubelet.scripted import ScriptedKubelet, runs
from tenants.models import Namespace, Tenant
from tests.support.cluster.worker import Worker, provision
from tests.support.rows import make
from tests.support.waiting import wait_until
from tests.workloads.cases.live import RUNNING, told
from tests.workloads.cases.problems import PROBLEMS, disrupted, rejected
from tests.workloads.situations.kubelets.replay import replay
from tests.workloads.situations.removals.test_removed_live import CLEARED, SYSTEM, TAINT, critical, evict, six
from tests.workloads.situations.test_problems_live import cpu
from tests.workloads.status.explain.messages import MESSAGES
from workloads.launch import actions
from workloads.launch.options import Options
from workloads.launch.types import LaunchSpec
from workloads.models import Run, Workload

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("watcher")]
# Fixtures of other modules, by name.
__all__ = ["cpu", "six"]

# Why the kubelet refuses each pod of a run, until its Job fails; and what removes one that ran.
REFUSED = frozenset({"node_refused", "node_changed", "share_limit", "device_plugin_down", "node_pressure"})
REMOVED = frozenset({"disrupted", "node_shutdown", "too_many_files"})
RECORDED = REFUSED | REMOVED
# Reasons that nothing in the portal knows, as they may come from a later version.
UNKNOWN = {
    "node_refused": rejected("InvalidNodeInfo", "Pod was rejected: Kubelet cannot get node info."),
    "disrupted": disrupted("DeletionBySomethingNew", "Something new: deleting"),
}
OF_TABLES = [(one.reason, one.seen) for one in (*PROBLEMS, *MESSAGES) if one.seen.pods]
CASES = {reason: seen for reason, seen in reversed(OF_TABLES) if reason in RECORDED} | UNKNOWN


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


def named(reason: str) -> str:
    """The name of the workload: underscores are not allowed there."""
    return reason.replace("_", "-")


def test_each_of_them_has_a_case() -> None:
    assert CASES.keys() == RECORDED


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


def test_reasons_of_pods_that_are_replaced_at_once(
    cpu: GpuClass, team_a: Tenant, namespace_a: Namespace, kube_worker: Kube, clean_cluster: None, job: LaunchSpec,
    by_alice: Actor, worker: Worker, admin: Api,
) -> None:  # fmt: skip
    """The end of a run names why each of its pods was refused; the record of an interruption, why one was removed."""
    make.grant(team_a, cpu, units=len(CASES))
    provision(namespace_a, kube_worker)
    space = namespace_a.name
    ways: dict[str, Pod] = {named(reason): seen.pods[-1] for reason, seen in CASES.items()}
    refused = {named(reason) for reason in REFUSED}

    def play(kubelet: ScriptedKubelet, pod: Json) -> None:
        name = pod["metadata"]["labels"]["gpu-portal/workload"]
        if name in refused:
            pod_status.report(kubelet.api, pod, pod_status.refused(ways[name].reason, ways[name].message))
        else:
            kubelet.running(pod)

    kubelet = ScriptedKubelet(admin)
    with kubelet.claim(space, script=play):
        for reason in CASES:
            # With a retry, the second refused pod ends the run.
            options = Options(retries=1 if reason in REFUSED else None)
            actions.launch("team-a", replace(job, name=named(reason), gpu_class=cpu.slug, options=options), by=by_alice)
        worker(lambda: all(told()[named(reason)] == RUNNING for reason in REMOVED))

        theirs = {named(reason) for reason in REMOVED}
        old = {name: pod for name in theirs for pod in pods_of(admin, space)[name]}
        for reason in REMOVED - {"disrupted"}:
            replay(kubelet, old[named(reason)], CASES[reason])
        target = ways["disrupted"].condition("DisruptionTarget")
        assert target is not None
        condition = pod_status.disruption(target.reason, target.message)
        pod_status.report(admin, old["disrupted"], {"conditions": [condition]})
        admin.delete("v1/pods", old["disrupted"]["metadata"]["name"], namespace=space)
        wait_until(
            lambda: all(running(pods_of(admin, space)[name]) - {old[name]["metadata"]["uid"]} for name in theirs)
        )

        worker(lambda: interruptions() == {named(reason): [reason] for reason in REMOVED})
        worker(lambda: all(told()[named(reason)][0] == "failed" for reason in REFUSED), within_s=120)
        ends = Run.objects.exclude(ended_at=None).values_list("workload__name", "reason", "outcome")
        assert set(ends) == {(named(reason), reason, "failed") for reason in REFUSED}
        assert {named(reason): told()[named(reason)] for reason in REFUSED} == {
            named(reason): ("failed", reason) for reason in REFUSED
        }
