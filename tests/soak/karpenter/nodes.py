"""Karpenter, with nodes that kwok simulates: runs that wait for a node, its limits, and what it may consolidate.

Takes about eight minutes, and three once to build Karpenter. No other test may use the cluster meanwhile:
Karpenter reports an event for every pod that waits.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from accounts.core.actor import Actor
from accounts.models import User
from catalog.models import GpuClass
from cluster.models import Cluster
from devcluster.client.kube import MERGE, Api
from devcluster.controlplane import programs
from devcluster.controlplane.karpenter import NODE_CLASS, InstanceType, Karpenter
from devcluster.processes.supervisor import Supervisor
from tenants.models import Namespace, Tenant
from tests.support.cluster.worker import Worker
from tests.support.rows import make
from tests.support.waiting import wait_until
from tests.workloads.cases.run_state import is_running, shown
from workloads.launch import actions
from workloads.launch.types import LaunchSpec
from workloads.status.types import Phase

pytestmark = pytest.mark.django_db(transaction=True)
GPU = "nvidia.com/gpu"
OWN = "test.example/own-node"
POOLS, CLAIMS = "karpenter.sh/v1/nodepools", "karpenter.sh/v1/nodeclaims"
LARGE = InstanceType("large", {"cpu": "64", "memory": "256Gi", "pods": "110", GPU: "4"}, price=4.0)
SMALL = InstanceType("small", {"cpu": "16", "memory": "64Gi", "pods": "110", GPU: "1"}, price=1.0)


@pytest.fixture(scope="module")
def karpenter(admin: Api, services: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    state = tmp_path_factory.mktemp("karpenter")
    with Supervisor(state / "log") as supervisor:
        found = Karpenter(
            programs.find_or_build(supervisor, programs.KARPENTER),
            Path(services["kubeconfigs"]["admin"]),
            state,
            (LARGE, SMALL),
            # Long enough that a page is read meanwhile.
            registration_delay_s=15,
        )
        found.install(admin)
        wait_until(lambda: found.is_served(admin), what="the kinds of Karpenter are served")
        found.add_node_class(admin)
        supervisor.start(found.command())
        supervisor.until_ready("karpenter")
        yield


@pytest.fixture
def elastic(cluster: Cluster, team_a: Tenant, unique: str) -> GpuClass:
    found = make.gpu_class(
        cluster, slug=f"elastic-{unique}", name="Elastic", node_labels={OWN: unique}, max_units=16, node_minutes=7,
        cpu_per_unit=8, memory_gib_per_unit=32,
    )  # fmt: skip
    make.grant(team_a, found, units=16)
    return found


@pytest.fixture
def pool(karpenter: None, admin: Api, elastic: GpuClass, unique: str) -> Iterator[str]:
    """Allows one large node."""
    name = f"gpus-{unique}"
    node = {
        "expireAfter": "Never",
        "requirements": [{"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]}],
        "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": NODE_CLASS},
        "taints": [{"key": GPU, "value": "present", "effect": "NoSchedule"}],
    }
    admin.apply(
        {
            "apiVersion": "karpenter.sh/v1",
            "kind": "NodePool",
            "metadata": {"name": name},
            "spec": {
                "limits": {GPU: "4"},
                "template": {"metadata": {"labels": {OWN: unique}}, "spec": node},
                "disruption": {
                    "consolidationPolicy": "WhenEmptyOrUnderutilized",
                    "consolidateAfter": "0s",
                    "budgets": [{"nodes": "100%"}],
                },
            },
        }
    )
    yield name
    admin.delete(POOLS, name)
    wait_until(lambda: not claims_of(admin, name), within_s=120, what="the nodes are removed")


@pytest.fixture
def ready(pool: str, provisioned: Tenant, watcher: None) -> str:
    return pool


def claims_of(admin: Api, pool: str) -> list[dict[str, Any]]:
    return [one for one in admin.list(CLAIMS) if one["metadata"]["labels"].get("karpenter.sh/nodepool") == pool]


def of_class(job: LaunchSpec, elastic: GpuClass, name: str, units: int, *, checkpoints: bool = False) -> LaunchSpec:
    options = replace(job.options, checkpoints=checkpoints)
    return replace(job, name=name, gpu_class=elastic.slug, units=units, options=options)


def node_of(admin: Api, namespace: Namespace, name: str) -> str:
    """Of its pod that is on one, "" if none is. Whether a notebook answers does not matter here."""
    pods = admin.list("v1/pods", namespace=namespace.name)
    return next(
        (
            str(pod["spec"].get("nodeName", ""))
            for pod in pods
            if pod["metadata"]["labels"].get("gpu-portal/workload") == name
            and pod["status"]["phase"] in ("Pending", "Running")
            and "deletionTimestamp" not in pod["metadata"]
        ),
        "",
    )


def test_a_node_is_started_for_a_run_and_the_next_reads_the_limit(
    ready: str,
    elastic: GpuClass,
    job: LaunchSpec,
    images: None,
    alice: User,
    by_alice: Actor,
    worker: Worker,
    admin: Api,
    namespace_a: Namespace,
) -> None:
    client = Client()
    client.force_login(alice)
    actions.launch("team-a", of_class(job, elastic, "train", 4), by=by_alice)
    worker(lambda: shown("train").status.reason == "node_starting")
    status = shown("train").status
    assert (status.phase, status.facts) == (Phase.PREPARING, {"node_pool": ready})
    assert f"A node that suits it is being started by NodePool {ready}, since " in status.sentence
    worker(lambda: is_running("train"), within_s=120)
    assert node_of(admin, namespace_a, "train").startswith(f"kwok-{ready}")

    actions.launch("team-a", of_class(job, elastic, "more", 4), by=by_alice)
    worker(lambda: shown("more").status.reason == "autoscaler_limit")
    sentence = f"The autoscaler may not add more nodes: NodePool {ready} is at its limit of 4 {GPU}."
    assert shown("more").status.sentence == sentence
    worker(lambda: shown("more").status.phase is Phase.BLOCKED)
    assert sentence in client.get("/teams/team-a/workloads/more").text
    body = client.get("/api/v1/workloads/more?team=team-a").json()
    assert (body["status"]["reason"], body["status"]["who_acts"]) == ("autoscaler_limit", "operators")

    admin.patch(POOLS, ready, {"spec": {"limits": {GPU: "8"}}}, content_type=MERGE)
    worker(lambda: shown("more").status.reason != "autoscaler_limit")
    worker(lambda: is_running("more"), within_s=120)


def test_what_karpenter_refuses_is_said_in_its_words(
    ready: str, elastic: GpuClass, job: LaunchSpec, images: None, by_alice: Actor, worker: Worker, admin: Api
) -> None:
    """No instance type has 8 GPUs."""
    admin.patch(POOLS, ready, {"spec": {"limits": {GPU: "100"}}}, content_type=MERGE)
    actions.launch("team-a", of_class(job, elastic, "train", 8), by=by_alice)
    worker(lambda: shown("train").status.reason == "autoscaler_refused")
    said = shown("train").status
    assert said.sentence == "The autoscaler adds no node for this: no instance type has enough resources."
    assert said.explained is not None
    assert said.explained.raw.startswith("Failed to schedule pod, no instance type has enough resources, requirements=")


@pytest.mark.parametrize("what", ["notebook", "job", "job with checkpoints"])
def test_karpenter_consolidates_only_what_continues_from_a_checkpoint(
    what: str,
    ready: str,
    elastic: GpuClass,
    job: LaunchSpec,
    notebook: LaunchSpec,
    images: None,
    by_alice: Actor,
    worker: Worker,
    admin: Api,
    namespace_a: Namespace,
) -> None:
    """A run with one GPU stays alone on a node with four; a node with one would be cheaper."""
    admin.patch(POOLS, ready, {"spec": {"limits": {GPU: "100"}}}, content_type=MERGE)
    actions.launch("team-a", of_class(job, elastic, "large", 3, checkpoints=True), by=by_alice)
    wanted = notebook if what == "notebook" else job
    checkpoints = what == "job with checkpoints"
    actions.launch("team-a", of_class(wanted, elastic, "kept", 1, checkpoints=checkpoints), by=by_alice)
    worker(lambda: is_running("large") and node_of(admin, namespace_a, "kept"), within_s=120)
    before = node_of(admin, namespace_a, "kept")
    assert before == node_of(admin, namespace_a, "large"), "both are on one node"
    actions.stop("team-a", "large", by=by_alice)

    if checkpoints:
        worker(lambda: node_of(admin, namespace_a, "kept") not in ("", before), within_s=240)
    else:
        worker(lambda: is_spared(admin, before), within_s=240)
        assert node_of(admin, namespace_a, "kept") == before
        assert len(claims_of(admin, ready)) == 1


def is_spared(admin: Api, node: str) -> bool:
    """Karpenter has considered the node, and left it because of the annotation."""
    return any(
        event["reason"] == "DisruptionBlocked" and "do-not-disrupt" in event["message"]
        for event in admin.list("v1/events")
        if event["involvedObject"].get("name") == node
    )
