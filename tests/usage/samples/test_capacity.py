"""From when to when a class had how many units: one row while the number is the same, none for times without news."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from catalog.models import GpuClass
from cluster.models import Cluster, MirrorEpoch
from tests.support.rows import make, mirrored
from usage.models import CapacityInterval
from usage.samples import sampling

pytestmark = pytest.mark.django_db
NOON = datetime(2026, 11, 20, 12, 0, 7, tzinfo=UTC)
NODE = "a100-1"
VERSIONS = itertools.count(2)


def minute(number: int) -> datetime:
    return NOON + timedelta(minutes=number)


def node(units: int, *, is_ready: bool = True, name: str = NODE) -> dict[str, Any]:
    labels = {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB", "nvidia.com/gpu.sharing-strategy": "none"}
    amounts = {"nvidia.com/gpu": str(units), "cpu": "64", "memory": "256Gi", "pods": "110"}
    raw = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {},
        "status": {"capacity": amounts, "allocatable": amounts},
    }
    made = mirrored.ready(raw)
    if not is_ready:
        made["status"]["conditions"][0]["status"] = "False"
    made["metadata"]["resourceVersion"] = str(next(VERSIONS))
    return made


def kept(gpu_class: GpuClass) -> list[tuple[int, datetime, datetime]]:
    rows = CapacityInterval.objects.filter(gpu_class=gpu_class).order_by("starts_at")
    return list(rows.values_list("units", "starts_at", "ends_at"))


def test_a_row_ends_when_the_number_changes(cluster: Cluster, a100: GpuClass) -> None:
    for number, units in enumerate((8, 8, 8, 4, 4, 8)):
        mirrored.seen(cluster, Node=[node(units)])
        sampling.sample_cluster(cluster, at=minute(number))
    assert kept(a100) == [(8, minute(0), minute(3)), (4, minute(3), minute(5)), (8, minute(5), minute(5))]


def test_a_node_that_is_not_ready_has_no_units_and_a_cordoned_one_has(cluster: Cluster, a100: GpuClass) -> None:
    cordoned = node(2, name="a100-2")
    cordoned["spec"] = {"unschedulable": True}
    mirrored.seen(cluster, Node=[node(8, is_ready=False), cordoned])
    sampling.sample_cluster(cluster, at=minute(0))
    assert kept(a100) == [(2, minute(0), minute(0))]


def test_times_without_news_are_in_no_row(cluster: Cluster, a100: GpuClass) -> None:
    mirrored.seen(cluster, Node=[node(8)])
    for number in range(2):
        sampling.sample_cluster(cluster, at=minute(number))
    MirrorEpoch.objects.update(beat_at=timezone.now() - timedelta(minutes=5))
    for number in range(2, 8):
        assert not sampling.sample_cluster(cluster, at=minute(number))
    MirrorEpoch.objects.update(beat_at=timezone.now())
    for number in (8, 9):
        sampling.sample_cluster(cluster, at=minute(number))
    assert kept(a100) == [(8, minute(0), minute(1)), (8, minute(8), minute(9))]


def test_one_late_minute_is_bridged(cluster: Cluster, a100: GpuClass) -> None:
    mirrored.seen(cluster, Node=[node(8)])
    for number in (0, 2, 5):
        sampling.sample_cluster(cluster, at=minute(number))
    assert kept(a100) == [(8, minute(0), minute(5))]


def test_a_class_without_nodes_has_0_units(cluster: Cluster, a100: GpuClass) -> None:
    mirrored.seen(cluster, Node=[])
    sampling.sample_cluster(cluster, at=minute(0))
    assert kept(a100) == [(0, minute(0), minute(0))]


def test_only_open_classes_with_units_on_nodes_are_recorded(cluster: Cluster, a100: GpuClass) -> None:
    storage = make.storage(cluster)
    mirrored.seen(cluster, Node=[node(8)])
    sampling.sample_cluster(cluster, at=minute(0))
    assert kept(storage) == []
    for state in ("retired", "draft"):
        GpuClass.objects.filter(pk=a100.pk).update(life_cycle=state)
        sampling.sample_cluster(cluster, at=minute(1))
    assert kept(a100) == [(8, minute(0), minute(0))]


def test_each_class_has_rows_of_its_own(cluster: Cluster, a100: GpuClass) -> None:
    other = make.gpu_class(cluster, slug="other", node_labels={"gpu": "other"})
    for number, units in enumerate((8, 4, 4)):
        mirrored.seen(cluster, Node=[node(units)])
        sampling.sample_cluster(cluster, at=minute(number))
    assert kept(a100) == [(8, minute(0), minute(1)), (4, minute(1), minute(2))]
    assert kept(other) == [(0, minute(0), minute(2))]
