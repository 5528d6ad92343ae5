"""Several workers of one job on the real control plane: all or nothing, names, retries and priority.

API server, Kueue, scheduler and Job controller are real; the test scripts the kubelet.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from django.test import Client

from accounts.core.actor import Actor
from catalog.models import GpuClass
from cluster.client.kube import Kube
from cluster.models import Cluster
from devcluster.client.kube import Api
from devcluster.client.types import Json
from devcluster.controlplane import hardware
from devcluster.kubelet.scripted import ScriptedKubelet
from tenants.models import Namespace, Tenant
from tests.support.cluster.worker import Worker, provision
from tests.support.rows import make
from tests.workloads.cases.run_state import named, run_of, shown
from tests.workloads.cases.situations import as_written
from tests.workloads.cases.situations_queue import IN_QUEUE
from tests.workloads.cases.steps_followed import by_hand, follow, help_of
from workloads.launch import actions
from workloads.launch.options import Options
from workloads.launch.types import LaunchSpec
from workloads.status.types import Phase

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("watcher")]
# A fixture of another module, by name.
__all__ = ["by_hand"]
INDEX = "batch.kubernetes.io/job-completion-index"


@pytest.fixture
def pair(cluster: Cluster, admin: Api, unique: str) -> Iterator[GpuClass]:
    """A class of two nodes with two GPUs each, which no other pods request."""
    product = f"OWN-{unique}"
    taint = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
    names = [f"own-{number}-{unique}" for number in (1, 2)]
    for name in names:
        labels = {"nvidia.com/gpu": {"product": product, "present": True}}
        hardware.add(admin, hardware.node(name, devices={"nvidia.com/gpu": 2}, labels=labels, taints=[taint]))
    yield make.gpu_class(
        cluster, slug=f"own-{unique}", name="Own", node_labels={"nvidia.com/gpu.product": product}, cpu_per_unit=1,
        memory_gib_per_unit=1,
    )  # fmt: skip
    for name in names:
        admin.delete("v1/nodes", name)


@pytest.fixture
def team(pair: GpuClass, team_a: Tenant, namespace_a: Namespace, kube_worker: Kube, clean_cluster: None) -> Tenant:
    make.grant(team_a, pair, units=6)
    provision(namespace_a, kube_worker)
    return team_a


@pytest.fixture
def gang(pair: GpuClass, job: LaunchSpec) -> LaunchSpec:
    """Four workers with one GPU each: all GPUs that exist."""
    return replace(job, gpu_class=pair.slug, options=Options(workers=4))


def pods_of(admin: Api, namespace: Namespace, workload: str = "train") -> dict[int, Json]:
    """The pods on a node, by index."""
    found = admin.list("v1/pods", namespace=namespace.name, labels=f"gpu-portal/workload={workload}")
    return {int(pod["metadata"]["labels"][INDEX]): pod for pod in found if pod["spec"].get("nodeName")}


def worker_of(kubelet: ScriptedKubelet, namespace: Namespace, index: int) -> Json:
    return kubelet.bound(namespace.name, labels=f"gpu-portal/workload=train,{INDEX}={index}")


def said(name: str = "train") -> str:
    return shown(name).status.sentence


def test_workers_find_each_other_and_are_ready_one_by_one(
    team: Tenant, namespace_a: Namespace, gang: LaunchSpec, by_alice: Actor, worker: Worker, admin: Api
) -> None:
    kubelet = ScriptedKubelet(admin)
    with kubelet.claim(namespace_a.name):
        actions.launch("team-a", gang, by=by_alice)
        worker(lambda: len(pods_of(admin, namespace_a)) == 4 and run_of("train").admitted_at)

        pods = pods_of(admin, namespace_a)
        assert sorted(pods) == [0, 1, 2, 3]
        for index, pod in pods.items():
            assert (pod["spec"]["hostname"], pod["spec"]["subdomain"]) == (f"train-1-{index}", "train-1")
            assert pod["metadata"]["annotations"][INDEX] == str(index)
            env = {one["name"]: one for one in pod["spec"]["containers"][0]["env"]}
            assert env["MASTER_ADDR"]["value"] == "train-1-0.train-1"
            assert (env["WORLD_SIZE"]["value"], env["MASTER_PORT"]["value"]) == ("4", "29500")
            for rank in ("RANK", "NODE_RANK"):
                assert env[rank]["valueFrom"]["fieldRef"]["fieldPath"] == f"metadata.annotations['{INDEX}']"
        (service,) = admin.list("v1/services", namespace=namespace_a.name)
        (job,) = admin.list("batch/v1/jobs", namespace=namespace_a.name)
        assert (service["metadata"]["name"], service["spec"]["clusterIP"]) == ("train-1", "None")
        assert service["metadata"]["ownerReferences"][0]["uid"] == job["metadata"]["uid"]
        assert all(service["spec"]["selector"].items() <= pod["metadata"]["labels"].items() for pod in pods.values())

        for index in (0, 1, 3):
            kubelet.running(worker_of(kubelet, namespace_a, index))
        worker(lambda: said().startswith("3 of 4 ready. Worker 2: "))
        row = shown("train")
        assert (row.status.phase, row.status.facts["ready"], row.status.facts["worker"]) == (Phase.PREPARING, 3, 2)
        assert [step.state for step in row.steps][-1] == "next"
        assert run_of("train").ready_at is None

        kubelet.running(worker_of(kubelet, namespace_a, 2))
        worker(lambda: said() == "4 of 4 ready." and run_of("train").ready_at)
        assert [step.state for step in shown("train").steps] == ["done"] * 5
        for index in range(4):
            kubelet.exited(worker_of(kubelet, namespace_a, index), 0)
        worker(lambda: run_of("train").ended_at)

    run = run_of("train")
    assert (run.outcome, run.message) == ("succeeded", "All 4 workers completed with exit code 0.")
    actions.delete("team-a", "train", by=by_alice)
    worker(lambda: not named(admin, "v1/services", namespace_a.name) and not named(admin, "v1/pods", namespace_a.name))


def test_a_gang_that_fits_in_part_waits_and_starts_whole(
    team: Tenant, namespace_a: Namespace, gang: LaunchSpec, by_alice: Actor, by_hand: Client, worker: Worker, admin: Api
) -> None:
    """The grant is sufficient, but one of four GPUs is in use, so that only three workers could start."""
    actions.launch("team-a", replace(gang, name="first", options=Options()), by=by_alice)
    worker(lambda: shown("first").status.phase is Phase.RUNNING)
    actions.launch("team-a", gang, by=by_alice)
    worker(lambda: shown("train").status.reason == "gang_fits_in_part")

    helps = help_of(by_alice, "train")
    as_written(IN_QUEUE["gang that fits only in part"], shown("train").status, helps)
    assert pods_of(admin, namespace_a) == {}

    actions.stop("team-a", "first", by=by_alice)
    worker(lambda: said() == "4 of 4 ready.")
    assert sorted(pods_of(admin, namespace_a)) == [0, 1, 2, 3]
    actions.stop("team-a", "train", by=by_alice)
    worker(lambda: run_of("train").ended_at and not named(admin, "v1/services", namespace_a.name))
    assert named(admin, "v1/pods", namespace_a.name) == []

    # Alternatively it requests as many workers as fit, as the step offered.
    actions.start("team-a", "first", by=by_alice)
    worker(lambda: shown("first").status.phase is Phase.RUNNING)
    follow(by_hand, helps.steps[0].href)
    worker(lambda: said() == "3 of 3 ready.")


def test_a_worker_that_crashes_ends_all_of_them_and_is_named(
    team: Tenant, namespace_a: Namespace, gang: LaunchSpec, by_alice: Actor, worker: Worker, admin: Api
) -> None:
    kubelet = ScriptedKubelet(admin)
    with kubelet.claim(namespace_a.name):
        actions.launch("team-a", gang, by=by_alice)
        worker(lambda: len(pods_of(admin, namespace_a)) == 4)
        for index in range(4):
            kubelet.running(worker_of(kubelet, namespace_a, index))
        worker(lambda: said() == "4 of 4 ready.")
        kubelet.exited(worker_of(kubelet, namespace_a, 2), 3)
        worker(lambda: run_of("train").ended_at)

    run = run_of("train")
    assert (run.outcome, run.exit_code) == ("failed", 3)
    assert run.message.startswith("Worker 2: ")
    assert "exit code 3" in run.message


def test_a_crash_is_tried_again_as_often_as_was_asked(
    team: Tenant, namespace_a: Namespace, gang: LaunchSpec, by_alice: Actor, worker: Worker, admin: Api
) -> None:
    """In a gang only the crashed worker restarts; a second crash of the same worker is final."""
    kubelet = ScriptedKubelet(admin)
    with kubelet.claim(namespace_a.name):
        actions.launch("team-a", replace(gang, options=Options(workers=2, retries=1)), by=by_alice)
        worker(lambda: len(pods_of(admin, namespace_a)) == 2)
        for index in (0, 1):
            kubelet.running(worker_of(kubelet, namespace_a, index))
        worker(lambda: said() == "2 of 2 ready.")
        kubelet.exited(worker_of(kubelet, namespace_a, 1), 3)
        worker(lambda: said().endswith("Retry 1 of 1."))
        assert said().startswith("1 of 2 ready. Worker 1: ")
        assert "exit code 3" in said()

        worker(lambda: len(named(admin, "v1/pods", namespace_a.name)) == 3)
        kubelet.running(worker_of(kubelet, namespace_a, 1))
        worker(lambda: said() == "2 of 2 ready. Worker 1: Retry 1 of 1.")
        kubelet.exited(worker_of(kubelet, namespace_a, 1), 3)
        worker(lambda: run_of("train").ended_at)

    assert run_of("train").outcome == "failed"
    assert run_of("train").message.startswith("Worker 1: ")
    assert run_of("train").message.endswith("It failed after 2 attempts.")


def test_production_work_goes_before_batch_work_of_the_same_team(
    team: Tenant, namespace_a: Namespace, gang: LaunchSpec, by_alice: Actor, worker: Worker, admin: Api
) -> None:
    """A gang runs on four GPUs; production work of its team takes them, and the whole gang is queued again."""
    actions.launch("team-a", gang, by=by_alice)
    worker(lambda: said() == "4 of 4 ready.")
    first = Options(priority="production")
    actions.launch("team-a", replace(gang, name="serve", units=2, options=first), by=by_alice)
    worker(lambda: shown("serve").status.phase is Phase.RUNNING and shown("train").status.phase is Phase.QUEUED)

    (queued,) = [
        one
        for one in admin.list("kueue.x-k8s.io/v1beta2/workloads", namespace=namespace_a.name)
        if one["metadata"]["ownerReferences"][0]["name"] == "serve-1"
    ]
    assert (queued["spec"]["priorityClassRef"]["name"], queued["spec"]["priority"]) == ("production", 1000)
    assert pods_of(admin, namespace_a) == {}
