"""A provider reclaims a spot node, on the real control plane: notice, drain, node gone, restart on another node."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest
from django.test import Client
from django.utils import timezone

from accounts.core.actor import Actor
from accounts.models import Delivery, Event, User
from catalog.models import GpuClass
from cluster.client.kube import Kube
from cluster.models import Cluster
from devcluster.client.kube import Api
from devcluster.client.types import Json
from devcluster.controlplane import hardware
from devcluster.kubelet.scripted import ScriptedKubelet
from portal.core.errors import Refused
from tenants.models import Namespace, Tenant
from tests.support.cluster.worker import Worker, provision
from tests.support.rows import make
from tests.support.waiting import wait_until
from tests.workloads.cases.live import RUNNING, on_nodes, play, told
from tests.workloads.cases.run_state import run_of
from usage.gpu_hours.month import month_figures
from workloads.launch import actions
from workloads.launch.options import Options
from workloads.launch.types import LaunchSpec
from workloads.models import AllocationInterval, Run

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("watcher")]
GPU_TAINT = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
# As aws-node-termination-handler sets it, with the time as value.
NOTICE = {"key": "aws-node-termination-handler/spot-itn", "value": "1795788000", "effect": "NoSchedule"}
SPOT = {"eks.amazonaws.com/capacityType": "SPOT"}
PAGE = "/teams/team-a/workloads/train"


@pytest.fixture
def spot(admin: Api, cluster: Cluster, unique: str) -> Iterator[GpuClass]:
    """Two spot nodes with one GPU each, which no other pods request. A unit costs 1 per second."""
    product = {"nvidia.com/gpu.product": f"SPOT-{unique}"}
    for number in (1, 2):
        node = hardware.node(
            f"spot-{number}-{unique}", devices={"nvidia.com/gpu": 1}, labels={**product, **SPOT}, taints=[GPU_TAINT]
        )
        hardware.add(admin, node)
    yield make.gpu_class(
        cluster, slug=f"spot-{unique}", name="Spot", node_labels={**product, **SPOT}, cpu_per_unit=1,
        memory_gib_per_unit=1, price_per_unit_hour=Decimal(3600),
    )  # fmt: skip
    for number in (1, 2):
        if admin.find("v1/nodes", f"spot-{number}-{unique}"):
            admin.delete("v1/nodes", f"spot-{number}-{unique}")


def evict(admin: Api, pod: Json) -> None:
    """As the termination handler drains a node."""
    meta = {"name": pod["metadata"]["name"], "namespace": pod["metadata"]["namespace"]}
    path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}/eviction"
    admin.request("POST", path, {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": meta})


def verbs() -> list[str]:
    return list(Event.objects.filter(verb__startswith="workload.").order_by("pk").values_list("verb", flat=True))


def test_a_spot_node_is_reclaimed(
    spot: GpuClass, team_a: Tenant, namespace_a: Namespace, kube_worker: Kube, clean_cluster: None, job: LaunchSpec,
    alice: User, by_alice: Actor, worker: Worker, admin: Api, client: Client,
) -> None:  # fmt: skip
    make.grant(team_a, spot, units=1)
    provision(namespace_a, kube_worker)
    client.force_login(alice)
    space, kubelet = namespace_a.name, ScriptedKubelet(admin)
    wanted = replace(job, gpu_class=spot.slug, options=Options())
    with pytest.raises(Refused) as refused:
        actions.launch("team-a", wanted, by=by_alice)
    assert refused.value.refusal.code == "checkpoints_not_confirmed"
    with kubelet.claim(space):
        actions.launch("team-a", replace(wanted, options=Options(checkpoints=True)), by=by_alice)
        play(kubelet, worker, space, "train")
        worker(lambda: told() == {"train": RUNNING})
        first = kubelet.bound(space)
        node = first["spec"]["nodeName"]

        admin.patch("v1/nodes", node, {"spec": {"taints": [GPU_TAINT, NOTICE]}})
        worker(lambda: "workload.node_leaving" in verbs())
        assert told() == {"train": RUNNING}, "nothing has happened yet"
        sentence = f"Node {node} is being removed: AWS reclaims the spot node about two minutes after its notice."
        assert sentence in Delivery.objects.get().body
        assert "continues from its last checkpoint" in Delivery.objects.get().body
        assert sentence in client.get(PAGE).text

        evict(admin, first)
        worker(lambda: "workload.interrupted" in verbs())
        admin.delete("v1/nodes", node)
        play(kubelet, worker, space, "train")
        worker(lambda: "workload.resumed" in verbs())
        second = kubelet.bound(space)
        assert second["metadata"]["uid"] != first["metadata"]["uid"]
        assert second["spec"]["nodeName"] != node
        assert on_nodes(admin, space) == ["train"]

        run = run_of("train")
        assert (run.number, run.ended_at) == (1, None)
        last = client.get("/api/v1/workloads/train?team=team-a").json()["interruption"]["last"]
        assert (last["cause"], last["times"]) == ("spot_reclaimed", 1)
        assert last["back_at"] is not None
        assert "AWS reclaimed its spot node" in last["sentence"]
        assert "AWS reclaimed its spot node" in client.get(PAGE).text
        assert "AWS reclaimed its spot node" in Delivery.objects.order_by("pk").last().body  # type: ignore[union-attr]
        assert Event.objects.filter(verb="workload.node_leaving").count() == 1

        # Kueue's times are whole seconds: both stretches have to be longer.
        resumed_at = Event.objects.get(verb="workload.resumed").at
        wait_until(lambda: timezone.now() > resumed_at + timedelta(seconds=2))
        actions.stop("team-a", "train", by=by_alice)
        worker(lambda: not Run.objects.filter(ended_at=None).exists())

    # Kueue's admission lasted: what it held before and after is one interval, and both stretches are paid.
    now = timezone.now()
    [held] = AllocationInterval.objects.filter(run=run)
    assert held.starts_at <= Event.objects.get(verb="workload.node_leaving").at
    ends_at = min(held.ends_at or now, now)
    assert ends_at > resumed_at
    seconds = Decimal((ends_at - held.starts_at).total_seconds())
    assert month_figures(namespace_a, at=now).team.cost == pytest.approx(seconds, abs=Decimal(1))
