"""What others put in the way of a run, on the real control plane: reported as written, and what the first step does.

API server, admission policies, scheduler, Job controller and Kueue are real; the test scripts the kubelet.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from django.test import Client
from django.utils import timezone

from accounts.core.actor import Actor
from catalog.models import GpuClass
from cluster.client.kube import Kube
from cluster.models import AppliedObject, Cluster
from devcluster.client.kube import Api
from devcluster.client.types import Json
from devcluster.controlplane import hardware
from devcluster.kubelet.scripted import ScriptedKubelet
from tenants.models import Namespace, Tenant
from tests.support.cluster.policies import OF_WORKLOAD, PODS, changes, denies, lift, refusal, trial_pod
from tests.support.cluster.worker import Worker, provision
from tests.support.rows import make
from tests.workloads.cases.live import RUNNING, told
from tests.workloads.cases.situations_queue import OF_OTHERS
from tests.workloads.cases.staged import until_as_written
from tests.workloads.cases.steps_followed import by_hand, follow
from tests.workloads.situations.test_problems_live import cpu
from tests.workloads.situations.test_situations_pods_live import kubelet_runs
from workloads.launch import actions
from workloads.launch.types import LaunchSpec
from workloads.models import Workload
from workloads.runs.reconcile import REFUSED_AGAIN

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("watcher")]

# Fixtures of other modules, by name.
__all__ = ["by_hand", "cpu"]

QUEUES = "kueue.x-k8s.io/v1beta2/localqueues"
GATE = 'Object{spec: Object.spec{schedulingGates: [Object.spec.schedulingGates{name: "example.org/budget"}]}}'
DENIAL = "not on weekdays"


@pytest.fixture
def full(admin: Api, cluster: Cluster, unique: str) -> Iterator[GpuClass]:
    """A class with one node, whose kubelet accepts no pods."""
    name, product = f"full-{unique}", f"FULL-{unique}"
    node = hardware.node(
        name, devices={"nvidia.com/gpu": 2}, labels={"nvidia.com/gpu": {"product": product}}, taints=[]
    )
    for amounts in ("capacity", "allocatable"):
        node["status"][amounts]["pods"] = "0"
    hardware.add(admin, node)
    yield make.gpu_class(
        cluster, slug=f"full-{unique}", name="Full", node_labels={"nvidia.com/gpu.product": product}, borrowing_limit=0
    )
    admin.delete("v1/nodes", name)


def counted(namespace: str, **hard: str) -> Json:
    meta = {"name": "counted", "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": meta, "spec": {"hard": hard}}


def is_counted(admin: Api, namespace: str) -> bool:
    return bool(admin.get("v1/resourcequotas", "counted", namespace=namespace).get("status", {}).get("used"))


def test_what_others_put_in_the_way(
    cpu: GpuClass, full: GpuClass, team_a: Tenant, namespace_a: Namespace, kube_worker: Kube, clean_cluster: None,
    job: LaunchSpec, by_alice: Actor, by_hand: Client, worker: Worker, admin: Api, unique: str,
) -> None:  # fmt: skip
    make.grant(team_a, cpu, units=50)
    make.grant(team_a, full, units=2)
    provision(namespace_a, kube_worker)
    space, kubelet = namespace_a.name, ScriptedKubelet(admin)
    admin.create(
        {
            "apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": {"name": "classless", "namespace": space},
            "spec": {
                "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}},
                "storageClassName": "",
            },
        }
    )  # fmt: skip

    def ask(name: str, *, of: GpuClass = cpu, volume: str = "") -> None:
        actions.launch("team-a", replace(job, name=name, gpu_class=of.slug, volume=volume), by=by_alice)

    gated, denied = (OF_WORKLOAD.format(name) for name in ("gated", "denied"))
    gates = changes(
        admin, space, f"gates-{unique}", rules=PODS, when=gated, to=GATE,
        until=lambda: "schedulingGates" in admin.create(trial_pod(space, "gated"), dry_run=True)["spec"],
    )  # fmt: skip
    denial = denies(
        admin, space, f"denies-{unique}", rules=PODS, unless=f"!({denied})", message=DENIAL,
        until=lambda: DENIAL in refusal(admin, trial_pod(space, "denied")),
    )  # fmt: skip
    with kubelet.claim(space), gates, denial:
        ask("classless", volume="classless")
        worker(lambda: "classless" in told())
        admin.create(counted(space, persistentvolumeclaims="0"))
        worker(lambda: is_counted(admin, space))
        ask("extra", volume="extra")
        ask("gated")
        ask("full", of=full)
        # Its Job is edited while the queue is held, before it has a pod.
        worker(
            lambda: (
                {"gated", "extra"} <= {pod["metadata"]["labels"]["gpu-portal/workload"] for pod in pods(admin, space)}
            )
        )
        admin.patch(QUEUES, "gpu-portal", {"spec": {"stopPolicy": "Hold"}}, namespace=space)
        ask("edited")
        worker(lambda: admin.find("batch/v1/jobs", "edited-1", namespace=space))
        admin.patch("batch/v1/jobs", "edited-1", {"spec": {"parallelism": 0}}, namespace=space)
        admin.patch(QUEUES, "gpu-portal", {"spec": {"stopPolicy": "None"}}, namespace=space)
        written = {
            "gated": "foreign scheduling gate",
            "edited": "edited Job",
            "full": "node's pods full",
            "extra": "volume over quota",
            "classless": "no storage class",
            "denied": "policy of the site",
        }
        ask("denied")
        found = until_as_written(worker, by_alice, {name: OF_OTHERS[key] for name, key in written.items()})

        admin.delete("v1/resourcequotas", "counted", namespace=space)
        admin.create(counted(space, **{"count/jobs.batch": "0"}))
        worker(lambda: is_counted(admin, space))
        ask("counted")
        until_as_written(worker, by_alice, {"counted": OF_OTHERS["object count at ResourceQuota"]})
        admin.delete("v1/resourcequotas", "counted", namespace=space)
        AppliedObject.objects.filter(name="counted-1").update(sent_at=timezone.now() - REFUSED_AGAIN)
        Workload.objects.filter(name="counted").update(due_at=timezone.now())

        lift(admin, f"denies-{unique}")
        follow(by_hand, found["edited"].steps[0].href)
        follow(by_hand, found["extra"].steps[0].href, volume="")
        for pod in pods(admin, space):
            if "schedulingGates" in pod["spec"]:
                admin.patch("v1/pods", pod["metadata"]["name"], {"spec": {"schedulingGates": []}}, namespace=space)

        expected = {"gated", "edited", "extra", "counted", "denied"}
        worker(
            lambda: kubelet_runs(kubelet, space, expected) and all(told()[name] == RUNNING for name in expected),
            within_s=120,
        )


def pods(admin: Api, namespace: str) -> list[Json]:
    return admin.list("v1/pods", namespace=namespace)
