"""Which pods of a node are runs of the portal, and which are of others."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from accounts.models import User
from catalog.models import GpuClass
from cluster.models import Cluster, MirrorEpoch, MirrorPod
from operations.maintenance.affected import is_known_since, on_nodes
from tenants.models import Namespace
from tests.support.rows import mirrored, running
from workloads.models import Run

pytestmark = pytest.mark.django_db
NODE = "a100-1"


@pytest.fixture
def pod(cluster: Cluster, namespace_a: Namespace, a100: GpuClass, alice: User) -> MirrorPod:
    """Of a run on the node, beside two pods of others: one uses devices, one does not."""
    rogue = mirrored.pod("rogue", node=NODE, namespace="elsewhere", **{"nvidia.com/gpu": 1})
    plain = mirrored.pod("plain", node=NODE, namespace="elsewhere")
    over = mirrored.pod("over", node=NODE, namespace="elsewhere", phase="Succeeded", **{"nvidia.com/gpu": 1})
    mirrored.hardware_seen(cluster, Pod=[rogue, plain, over], Workload=[], Job=[])
    return running.make_ready(running.workload(namespace_a, a100, name="mine", by=alice))


def seen(cluster: Cluster) -> tuple[list[str], list[str]]:
    found = on_nodes(cluster.pk, [NODE, "a100-2"])
    assert found.runs["a100-2"] == found.others["a100-2"] == []
    return [run.workload.name for run in found.runs[NODE]], found.others[NODE]


def test_runs_and_pods_that_use_devices(pod: MirrorPod, cluster: Cluster) -> None:
    assert seen(cluster) == (["mine"], ["elsewhere/rogue"])
    found = on_nodes(cluster.pk, [NODE])
    assert found.nodes_of(found.all_runs[0]) == [NODE]


def test_a_run_that_has_ended_holds_nothing_of_its_own(pod: MirrorPod, cluster: Cluster) -> None:
    Run.objects.update(ended_at=timezone.now(), outcome="stopped")
    pod.refresh_from_db()
    pod.record = {**pod.record, "requests": {"nvidia.com/gpu": 1}}
    pod.save()
    assert seen(cluster) == ([], ["elsewhere/rogue", f"{pod.namespace}/{pod.name}"])


def test_a_pod_that_was_made_for_another_run_is_not_this_one(pod: MirrorPod, cluster: Cluster) -> None:
    """As after a restore: the owner and the name are the same."""
    pod.record = {**pod.record, "labels": {"gpu-portal/identity": "another"}, "requests": {"nvidia.com/gpu": 1}}
    pod.save()
    assert seen(cluster) == ([], ["elsewhere/rogue", f"{pod.namespace}/{pod.name}"])


def test_what_was_there_before_is_not_what_is_there_now(pod: MirrorPod, cluster: Cluster) -> None:
    now = timezone.now()
    assert is_known_since(cluster.pk, now - timedelta(minutes=1))
    assert not is_known_since(cluster.pk, now + timedelta(minutes=1))
    MirrorEpoch.objects.update(beat_at=now - timedelta(minutes=5))
    assert not is_known_since(cluster.pk, now - timedelta(minutes=10))
