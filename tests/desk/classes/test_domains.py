"""Free units by topology level: per rack and node, the largest gang that fits, and what of it is unknown."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from accounts.models import User
from catalog.models import GpuClass
from cluster.models import Cluster, MirrorKind
from desk.classes.domains import ClassDomains, Domain, LargestGang, class_domains, domains_of, gang_sentence
from tests.support.rows import make, mirrored
from workloads.core.class_nodes import ClassNode, ClassNodes

ZONE, RACK, HOST = "example.org/zone", "example.org/rack", "kubernetes.io/hostname"
RACKS = "gpu-portal-racks"
LABELS = {"gpu": "a100"}


def seen(name: str, *places: str | None, free: int = 8, cpu: float = 64, **more: Any) -> ClassNode:
    values = {"capacity": 8, "allocatable": 8, "used": 8 - free, "cpu_free": cpu, "memory_free_gib": 512, **more}
    return ClassNode(name, places=(*places, name), **values)


def of(*nodes: ClassNode) -> tuple[Domain, ...]:
    return domains_of(ClassNodes(nodes, units=1, cpu=4, memory_gib=16, levels=(ZONE, RACK, HOST)))


def test_a_rack_is_the_sum_of_its_nodes_and_known_by_all_levels_above() -> None:
    """Both zones have a rack 1; the node without a rack is in none."""
    found = of(seen("a", "z1", "1", free=5), seen("b", "z1", "1", free=1), seen("c", "z2", "1"), seen("d", "z1", None))
    racks = [one for one in found if one.level == RACK]
    assert [(one.values, one.nodes, one.units, one.used, one.free) for one in racks] == [
        (("z1", "1"), 2, 16, 10, 6),
        (("z2", "1"), 1, 8, 0, 8),
    ]
    assert [one.values for one in found] == [
        ("z1",),
        ("z1", "1"),
        ("z1", "1", "a"),
        ("z1", "1", "b"),
        ("z2",),
        ("z2", "1"),
        ("z2", "1", "c"),
    ]


@pytest.mark.parametrize("why", [{"schedulable": False}, {"ready": False}, {"kept": True}])
def test_free_units_of_a_closed_node_are_not_free(why: dict[str, bool]) -> None:
    rack = of(seen("a", "z", "1", free=5, **why), seen("b", "z", "1", free=2))[1]
    assert (rack.units, rack.used, rack.free, rack.closed, rack.workers) == (16, 9, 2, 5, 2)


def test_the_largest_gang_counts_cpu_as_kueue_does() -> None:
    """Rack 1 has most free units; its CPU is enough for two workers."""
    found = of(seen("a", "z", "1", free=8, cpu=9), seen("b", "z", "2", free=6))
    topology: Any = type("T", (), {"levels": (ZONE, RACK, HOST)})()
    largest = ClassDomains(topology, found).largest
    assert largest == (LargestGang(ZONE, 8, ("z",)), LargestGang(RACK, 6, ("z", "2")))
    assert gang_sentence(largest[1], "GPU") == (
        "Largest gang that fits in one example.org/rack now: 6 workers with 1 GPU each, in 2."
    )
    nothing = ClassDomains(topology, of(seen("a", "z", "1", free=0))).largest[1]
    assert gang_sentence(nothing, "GPU") == "No worker with 1 GPU fits in any example.org/rack now."


def test_a_page_with_many_nodes_lists_what_is_above_them() -> None:
    topology: Any = type("T", (), {"levels": (ZONE, RACK, HOST)})()
    few, many = ([seen(f"n{number:03}", "z", "1") for number in range(count)] for count in (100, 101))
    assert len(ClassDomains(topology, of(*few)).shown) == 102
    found = ClassDomains(topology, of(*many))
    assert ([one.level for one in found.shown], found.hides_nodes) == ([ZONE, RACK], True)


# ---- from the mirror -------------------------------------------------------------------------------------------------


def node(name: str, rack: str, **spec: Any) -> dict[str, Any]:
    labels = {**LABELS, HOST: name, **({RACK: rack} if rack else {})}
    size = {"nvidia.com/gpu": "8", "cpu": "64", "memory": "512Gi"}
    status = {"capacity": size, "allocatable": size}
    return mirrored.ready(
        mirrored.with_metadata({"metadata": {"name": name, "labels": labels}, "spec": spec, "status": status})
    )


def topology(name: str, *levels: str) -> dict[str, Any]:
    spec = {"levels": [{"nodeLabel": level} for level in levels]}
    return mirrored.with_metadata({"metadata": {"name": name}, "spec": spec})


NODES = (node("a", "r1"), node("b", "r1", unschedulable=True), node("c", "r2"), node("d", ""))
KINDS: dict[str, Any] = {"Node": NODES, "Topology": (topology(RACKS, RACK, HOST),)}


def _pod(number: int) -> dict[str, Any]:
    requests: dict[str, Any] = {"nvidia.com/gpu": 2}
    return mirrored.pod(f"p{number}", node="c", namespace=f"team-{number}", **requests)


def pods(count: int = 1) -> list[dict[str, Any]]:
    """Two units of node c each, of as many teams."""
    return [_pod(number) for number in range(count)]


@pytest.fixture
def racked(cluster: Cluster) -> GpuClass:
    return make.gpu_class(cluster, node_labels=LABELS, resource="nvidia.com/gpu", topology=RACKS)


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


@pytest.mark.django_db
def test_the_page_and_the_api_show_them(racked: GpuClass, alice: User) -> None:
    mirrored.seen(racked.cluster, **KINDS, Pod=pods())
    found = signed_in(alice).get(f"/api/v1/classes/{racked.slug}").json()["topology"]
    assert found["domains"] == [
        {"level": RACK, "values": ["r1"], "nodes": 2, "units": 16, "used": 0, "free": 8, "workers": 8},
        {"level": RACK, "values": ["r2"], "nodes": 1, "units": 8, "used": 2, "free": 6, "workers": 6},
    ]
    text = signed_in(alice).get(f"/catalog/{racked.slug}").content.decode()
    assert "Largest gang that fits in one example.org/rack now: 8 workers with 1 GPU each, in r1." in text
    assert "r2 / c" in text


@pytest.mark.django_db
@pytest.mark.parametrize("missing", ["Node", "Pod", "Topology"])
def test_without_one_of_the_kinds_they_are_unknown_and_not_0(racked: GpuClass, alice: User, missing: str) -> None:
    mirrored.seen(racked.cluster, **KINDS, Pod=pods())
    MirrorKind.objects.filter(kind=missing).delete()
    assert signed_in(alice).get(f"/api/v1/classes/{racked.slug}").json()["topology"]["domains"] is None
    assert "Largest gang" not in signed_in(alice).get(f"/catalog/{racked.slug}").content.decode()


@pytest.mark.django_db
def test_the_cost_grows_neither_with_nodes_nor_with_teams_nor_with_classes(racked: GpuClass) -> None:
    counts = []
    for number in (1, 30):
        nodes = [node(f"n{each}", f"r{each % 3}") for each in range(number)]
        mirrored.seen(racked.cluster, Topology=KINDS["Topology"], Node=[*NODES, *nodes], Pod=pods(min(number, 4)))
        others = [
            make.gpu_class(racked.cluster, slug=f"c{number}-{each}", node_labels=LABELS, topology=RACKS)
            for each in range(number)
        ]
        with CaptureQueriesContext(
            connection,
        ) as asked:
            found = class_domains([racked, *others])
        assert all(one.domains for one in found.values())
        counts.append(len(asked))
    assert counts[0] == counts[1] == 5
    GpuClass.objects.update(topology="")
    racked.refresh_from_db()
    with CaptureQueriesContext(connection) as asked:
        assert class_domains([racked]) == {}
    assert len(asked) == 0
