"""kubectl cordons, drains and uncordons a node of the real control plane, and the portal had no part in it."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from accounts.core.actor import Actor
from accounts.models import Delivery, Event, User
from catalog.models import GpuClass
from cluster.client.kube import Kube
from cluster.models import Cluster, MirrorNode
from cluster.reads import queries as mirror
from devcluster.client.kube import Api
from devcluster.controlplane import programs
from devcluster.processes.supervisor import Supervisor
from operations.cordons.following import follow_cordons
from operations.models import NodeCordon
from portal.ui.text import date_and_time
from tenants.models import Namespace, Tenant
from tests.operations.maintenance.lab import Lab, class_of_own_nodes, nodes_of_their_own
from tests.support.cluster.worker import Worker
from tests.support.waiting import wait_until
from tests.workloads.cases.live import RUNNING, told
from workloads.launch import actions as launch_actions
from workloads.launch.types import LaunchSpec

pytestmark = pytest.mark.django_db(transaction=True)
Kubectl = Callable[..., str]
UNSCHEDULABLE = "node.kubernetes.io/unschedulable"


@pytest.fixture(scope="module")
def kubectl(services: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Kubectl:
    """As an operator has it: the portal's code is not involved."""
    home = tmp_path_factory.mktemp("kubectl")
    with Supervisor(home / "run") as supervisor:
        program: Path = programs.find_or_build(supervisor, programs.KUBECTL)["kubectl"]

    def call(*arguments: str) -> str:
        argv = [str(program), "--kubeconfig", str(services["kubeconfigs"]["admin"]), *arguments]
        env = {"HOME": str(home), "PATH": "/usr/bin:/bin"}
        done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return call


@pytest.fixture
def lab(admin: Api, cluster: Cluster, kube_worker: Kube, olga: User, unique: str, watcher: None) -> Iterator[Lab]:
    name = f"cordoned-{unique}"
    with nodes_of_their_own(admin, cluster, kube_worker, olga, names=[name], own=unique) as found:
        yield found[name]


@pytest.fixture
def own(
    team_a: Tenant, namespace_a: Namespace, kube_worker: Kube, unique: str, lab: Lab, clean_cluster: None
) -> GpuClass:
    """A class of this one node, with more quota than it has units."""
    return class_of_own_nodes(namespace_a, team_a, kube_worker, own=unique, units=8)


def taints_in_mirror(cluster: Cluster, node: str) -> set[str]:
    return {taint.key for one in mirror.cordoned_nodes(cluster.pk) if one.name == node for taint in one.taints}


def causes() -> list[str]:
    return [event.after["reason"] for event in Event.objects.filter(verb="workload.interrupted").order_by("pk")]


def bodies() -> list[str]:
    return list(Delivery.objects.filter(user__name="Alice").order_by("pk").values_list("body", flat=True))


def test_a_node_is_cordoned_drained_and_uncordoned_with_kubectl(
    lab: Lab, own: GpuClass, cluster: Cluster, namespace_a: Namespace, job: LaunchSpec, alice: User, by_alice: Actor,
    worker: Worker, kubectl: Kubectl, client: Client,
) -> None:  # fmt: skip
    client.force_login(alice)
    launch_actions.launch("team-a", replace(job, name="long", gpu_class=own.slug, units=2), by=by_alice)
    worker(lambda: told()["long"] == RUNNING)

    kubectl("cordon", lab.node)
    # Before the taint the row would have the time of kubectl's write, which may be that of the second before.
    wait_until(lambda: UNSCHEDULABLE in taints_in_mirror(cluster, lab.node), within_s=20)
    wait_until(lambda: follow_cordons(cluster) or NodeCordon.objects.exists(), within_s=20)
    row = NodeCordon.objects.get()
    [taint] = [one for one in lab.seen()["spec"]["taints"] if one["key"] == UNSCHEDULABLE]
    assert row.manager == "kubectl"
    assert row.since is not None
    assert row.since.strftime("%Y-%m-%dT%H:%M:%SZ") == taint["timeAdded"]
    follow_cordons(cluster)
    [body] = bodies()
    since = date_and_time(row.since)
    assert body.startswith(f"Node {lab.node} takes no new workloads since {since} (cordoned with kubectl). long ")
    assert told()["long"] == RUNNING

    kubectl("drain", lab.node, "--ignore-daemonsets", "--force", "--delete-emptydir-data", "--timeout=50s")
    # Kueue finds no other node for the pod and takes the units back.
    worker(lambda: causes() == ["moved_by_drain", "requeued_after_drain"])
    assert "moved off its node by a drain" in bodies()[1]
    assert len(bodies()) == 2, "of the drain people are told once"
    assert told()["long"][0] == "queued"
    assert "drain" in client.get("/api/v1/workloads/long?team=team-a").json()["interruption"]["last"]["sentence"]

    kubectl("uncordon", lab.node)
    wait_until(lambda: MirrorNode.objects.filter(name=lab.node, schedulable=True).exists(), within_s=20)
    for _twice in range(2):
        follow_cordons(cluster)
    over = [one for one in bodies() if "takes new workloads again" in one]
    assert len(over) == 1
    worker(lambda: told()["long"] == RUNNING)
