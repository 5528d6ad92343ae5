"""Devices of two sizes are counted one by one: by memory, by node, and less those that claims hold."""

from __future__ import annotations

from typing import Any

import pytest

from catalog.classes.capacity import queries
from catalog.classes.capacity.device_memory import MemorySize, gib_text, memory_sizes, sizes_text
from catalog.classes.capacity.types import Capacity
from catalog.models import GpuClass
from cluster.models import Cluster
from tests.support.rows import make, mirrored

pytestmark = pytest.mark.django_db
DRIVER, GIB, LABELS = "gpu.example.org", 2**30, {"example.org/gpus": "two-sizes"}
TAINT = {"key": "example.org/broken", "effect": "NoSchedule"}


@pytest.fixture
def sized(cluster: Cluster) -> GpuClass:
    return make.gpu_class(
        cluster, slug="sized", interface="dra", resource="dra.portal/sized", device_class=DRIVER,
        device_selector=f"device.driver == '{DRIVER}'", node_labels=LABELS, tolerations=[],
    )  # fmt: skip


def node(name: str, **spec: Any) -> dict[str, Any]:
    amounts = {"cpu": "64", "memory": "256Gi", "pods": "110"}
    return mirrored.ready(
        {
            "metadata": {"name": name, "labels": LABELS},
            "spec": spec,
            "status": {"capacity": amounts, "allocatable": amounts},
        }
    )


def devices(node: str, *capacities: Any, **more: Any) -> dict[str, Any]:
    """A slice. `capacities`: GiB of memory, or the capacity as it is published; `more`: of every device."""
    published = [{"memory": {"value": f"{one}Gi"}} if isinstance(one, int) else one for one in capacities]
    made = [{"name": f"gpu-{number}", "capacity": one, **more} for number, one in enumerate(published)]
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    return mirrored.with_metadata(
        {
            "metadata": {"name": f"{node}-slice"},
            "spec": {"driver": DRIVER, "nodeName": node, "pool": pool, "devices": made},
        }
    )


def claim(name: str, *held: tuple[str, int]) -> dict[str, Any]:
    results = [{"request": "gpu", "driver": DRIVER, "pool": node, "device": f"gpu-{number}"} for node, number in held]
    body = {
        "metadata": {"name": name, "namespace": "team-a"},
        "status": {"allocation": {"devices": {"results": results}}},
    }
    return mirrored.with_metadata(body)


def seen(cluster: Cluster, *slices: dict[str, Any], claims: Any = (), nodes: Any = ()) -> None:
    found = nodes or [node(name) for name in ("n1", "n2")]
    mirrored.seen(cluster, Node=found, ResourceSlice=slices, ResourceClaim=claims, Pod=[], DeviceClass=[])


def capacity(one: GpuClass) -> Capacity:
    return queries.capacities(one.cluster, [one], with_nodes=True)[one.pk]


def of_at_least(one: GpuClass, gib: int) -> tuple[Any, ...]:
    found = queries.of_memory(capacity(one), one, gib)
    assert queries.of_memory(queries.capacities(one.cluster, [one])[one.pk], one, gib).free == found.free
    return found.allocatable, found.used, found.free, found.most_on_one_node, {n.name: n.free for n in found.nodes}


def test_free_devices_are_counted_by_memory_and_node(sized: GpuClass) -> None:
    claims = [claim("a", ("n1", 0), ("n1", 3)), claim("b", ("n2", 1))]
    seen(sized.cluster, devices("n1", 20, 40, 40, 80), devices("n2", 20, 40), claims=claims)
    assert of_at_least(sized, 1) == (6, 3, 3, 2, {"n1": 2, "n2": 1})
    assert of_at_least(sized, 40) == (4, 2, 2, 2, {"n1": 2, "n2": 0})
    assert of_at_least(sized, 41) == (1, 1, 0, 0, {"n1": 0})
    assert of_at_least(sized, 81) == (0, 0, 0, 0, {})
    assert memory_sizes(sized, capacity(sized)) == (
        MemorySize(20 * GIB, on_one_node=4), MemorySize(40 * GIB, on_one_node=3), MemorySize(80 * GIB, on_one_node=1),
    )  # fmt: skip


def test_a_device_on_a_closed_node_or_with_a_taint_is_not_free(sized: GpuClass) -> None:
    closed = node("n1", unschedulable=True)
    broken = devices("n2", 40, 80, taints=[TAINT])
    seen(sized.cluster, devices("n1", 80), broken, nodes=[closed, node("n2")])
    assert of_at_least(sized, 80)[:3] == (1, 0, 0)


def test_one_size_is_counted_without_reading_every_node(sized: GpuClass, django_assert_num_queries: Any) -> None:
    seen(sized.cluster, devices("n1", 40, 40), devices("n2", 40))
    with django_assert_num_queries(2):
        found = queries.capacities(sized.cluster, [sized])[sized.pk]
    assert memory_sizes(sized, found) == (MemorySize(40 * GIB, on_one_node=2),)
    assert queries.of_memory(found, sized, 40).most_on_one_node == 2
    assert queries.of_memory(found, sized, 41).free == 0


def test_a_name_with_the_domain_of_the_driver_is_the_same(sized: GpuClass) -> None:
    seen(sized.cluster, devices("n1", 20, {f"{DRIVER}/memory": {"value": "40Gi"}}))
    assert of_at_least(sized, 40)[:3] == (1, 0, 1)


@pytest.mark.parametrize(
    "published",
    [
        devices("n1", 20, {}),
        devices("n1", 20, {"example.com/memory": {"value": "40Gi"}}),
        devices("n1", 20, 40, consumesCounters=[{"counterSet": "gpu-0", "counters": {"memory": {"value": "20Gi"}}}]),
        devices("n1", 20, 40, allowMultipleAllocations=True),
    ],
    ids=["not published", "of another domain", "partitions that exclude each other", "held by several claims"],
)
def test_where_it_is_not_known_how_many_are_free_no_size_can_be_requested(
    sized: GpuClass, published: dict[str, Any]
) -> None:
    seen(sized.cluster, published)
    assert capacity(sized).free == 2
    assert memory_sizes(sized, capacity(sized)) == ()


def test_without_devices_the_sizes_are_unknown(sized: GpuClass, a100: GpuClass) -> None:
    assert memory_sizes(sized, capacity(sized)) is None
    seen(sized.cluster)
    assert memory_sizes(sized, capacity(sized)) is None
    assert memory_sizes(a100, capacity(a100)) == (), "a device plugin says nothing of single devices"
    sized.max_units = 8
    assert sized.is_autoscaled
    assert memory_sizes(sized, capacity(sized)) == (), "a node that is added may have others"


def test_memory_is_rounded_down() -> None:
    assert [gib_text(size) for size in (81559 * 2**20, 80 * GIB, 9856 * 2**20)] == ["79.6", "80", "9.6"]
    assert sizes_text([MemorySize(20 * GIB, 1), MemorySize(40 * GIB, 1)]) == "20 and 40 GiB"
