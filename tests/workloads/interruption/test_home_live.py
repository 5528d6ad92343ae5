"""Homes of two teams on the real control plane: one borrows units of the other; a pod of another origin runs there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from accounts.core.actor import Actor
from catalog.models import GpuClass
from cluster.client.kube import Kube
from cluster.models import Cluster
from desk.capacity.lending import NONE_LENT, LentUnits
from desk.home import queries as desk
from desk.home.queries import HomeState
from devcluster.client.kube import Api
from devcluster.controlplane import hardware
from devcluster.kubelet.scripted import ScriptedKubelet
from tenants.models import Namespace, Tenant
from tests.support.cluster import queued
from tests.support.cluster.worker import Worker, provision
from tests.support.rows import make
from tests.support.waiting import wait_until
from tests.workloads.cases.live import is_open, play
from workloads.launch import actions
from workloads.launch.options import Options
from workloads.launch.types import LaunchSpec

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("watcher")]


@pytest.fixture
def six(admin: Api, cluster: Cluster, unique: str) -> Iterator[GpuClass]:
    """Six GPUs that no other work requests: four on one node, two on another."""
    product = f"HOME-{unique}"
    taint = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
    labels = {"nvidia.com/gpu": {"product": product, "present": True}}
    nodes = {f"home-{unique}-1": 4, f"home-{unique}-2": 2}
    for name, cards in nodes.items():
        hardware.add(admin, hardware.node(name, devices={"nvidia.com/gpu": cards}, labels=labels, taints=[taint]))
    selector = {"nvidia.com/gpu.product": product}
    yield make.gpu_class(cluster, slug=f"home-{unique}", name="Six", node_labels=selector, borrowing_limit=4)
    for name in nodes:
        admin.delete("v1/nodes", name)


def home(namespace: Namespace) -> HomeState:
    found = desk.namespace_by_name(namespace.name)
    assert found is not None
    return desk.home_state(found)


def lent(namespace: Namespace) -> LentUnits | None:
    return home(namespace).holdings[0].lent


def test_what_is_borrowed_here_is_lent_there_and_a_strangers_pod_is_called_one(
    six: GpuClass, job: LaunchSpec, team_a: Tenant, namespace_a: Namespace, unique: str, kube_worker: Kube,
    clean_cluster: None, by_alice: Actor, worker: Worker, admin: Api,
) -> None:  # fmt: skip
    team_b = make.tenant(six.cluster, slug="team-b", namespace=f"team-b-{unique}")
    namespace_b = team_b.namespaces.get()
    make.grant(team_a, six, units=2)
    make.grant(team_b, six, units=4)
    provision(namespace_a, kube_worker)
    wait_until(lambda: is_open(namespace_b, kube_worker))
    assert lent(namespace_b) == NONE_LENT
    kubelet = ScriptedKubelet(admin)
    with kubelet.claim(namespace_a.name), kubelet.claim(namespace_b.name):
        confirmed = Options(checkpoints=True)
        borrows = replace(job, name="borrows", gpu_class=six.slug, units=4, options=confirmed)
        actions.launch("team-a", borrows, by=by_alice)
        play(kubelet, worker, namespace_a.name, "borrows")

        def is_told() -> bool:
            rows = {row.name: (row.status, row.can_be_interrupted) for row in home(namespace_a).running}
            return rows == {"borrows": ("running", "yes, borrowed units may be reclaimed")}

        worker(is_told)
        # All six are promised, so that these two cannot belong to another team.
        wait_until(lambda: lent(namespace_b) == LentUnits(2, 2))
        mine = home(namespace_a)
        assert [(one.used, one.borrowed, one.lent) for one in mine.holdings] == [(4, 2, NONE_LENT)]
        assert mine.running_groups[0].text == "4 GPUs in use, 2 borrowed"

        queued.launch(kube_worker, six, namespace_b, name="by-hand", units=1)
        wait_until(lambda: len(home(namespace_b).not_ours) == 1)
        (stranger,) = home(namespace_b).not_ours
        assert stranger.name.startswith("by-hand-1-")
        assert (stranger.units, stranger.node) == ("1 nvidia.com/gpu", f"home-{unique}-2")
        assert home(namespace_b).running == []
        assert mine.not_ours == ()
