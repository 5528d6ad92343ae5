"""A class names a Topology with more levels than the host: which it may have, and when it may change."""

from __future__ import annotations

from typing import Any

import pytest

from accounts.core.actor import system_actor
from catalog.classes import actions, queries
from catalog.classes.topology import ClassTopology, topologies_of, topology_text
from catalog.models import GpuClass
from catalog.pool.reconcile import flavor_spec
from cluster.models import Cluster
from portal.core.errors import Refused
from tests.support.rows import make, mirrored

pytestmark = pytest.mark.django_db
BY = system_actor("test")
RACK, HOST = "example.org/rack", "kubernetes.io/hostname"
RACKS = "gpu-portal-racks"
LABELS = {"gpu": "a100"}


def node(name: str, *, rack: str = "") -> dict[str, Any]:
    metadata = {"name": name, "labels": {**LABELS, HOST: name, **({RACK: rack} if rack else {})}}
    return mirrored.ready(mirrored.with_metadata({"metadata": metadata, "spec": {}, "status": {}}))


def topology(name: str, *levels: str) -> dict[str, Any]:
    spec = {"levels": [{"nodeLabel": level} for level in levels]}
    return mirrored.with_metadata({"metadata": {"name": name}, "spec": spec})


def holding(gpu_class: GpuClass) -> dict[str, Any]:
    flavors = {"nvidia.com/gpu": queries.flavor_name(gpu_class)}
    assignment = {"name": "main", "count": 1, "flavors": flavors, "resourceUsage": {"nvidia.com/gpu": "1"}}
    admission = {"clusterQueue": "team-a", "podSetAssignments": [assignment]}
    metadata = {"name": "one", "namespace": "team-a", "labels": {"app.kubernetes.io/managed-by": "gpu-portal"}}
    return mirrored.with_metadata(
        {"metadata": metadata, "spec": {"queueName": "gpu-portal"}, "status": {"admission": admission}}
    )


TOPOLOGIES = (topology(RACKS, RACK, HOST), topology("gpu-portal-loose", RACK), topology("gpu-portal", HOST))
ALL = (node("a", rack="r1"), node("b", rack="r2"))


@pytest.fixture
def a100(cluster: Cluster) -> GpuClass:
    return make.gpu_class(cluster, node_labels=LABELS)


def refused(gpu_class: GpuClass, **values: Any) -> tuple[str, int, str]:
    with pytest.raises(Refused) as found:
        actions.edit_class(gpu_class.pk, by=BY, **values)
    return found.value.code, found.value.refusal.status, str(found.value.refusal.field)


def test_a_class_whose_nodes_all_have_the_labels_gets_a_flavor_of_the_topology(a100: GpuClass) -> None:
    mirrored.seen(a100.cluster, Node=ALL, Topology=TOPOLOGIES, Workload=[])
    hosts = flavor_spec(a100, owner="o")
    racks = flavor_spec(actions.edit_class(a100.pk, topology=RACKS, by=BY), owner="o")
    assert (hosts.topology, racks.topology) == ("gpu-portal", RACKS)
    # The topology of a flavor never changes.
    assert hosts.name != racks.name


@pytest.mark.parametrize(
    ("nodes", "name"),
    [
        ((*ALL, node("c")), RACKS),
        (ALL, "gpu-portal-blocks"),
        (ALL, "gpu-portal-loose"),
        (ALL, "racks"),
        (ALL, "gpu-portal-Racks"),
    ],
    ids=["a node without the label", "not in the cluster", "its last level is not the host", "of others", "no name"],
)
def test_a_topology_by_which_nothing_would_start_is_refused(a100: GpuClass, nodes: Any, name: str) -> None:
    mirrored.seen(a100.cluster, Node=nodes, Topology=TOPOLOGIES, Workload=[])
    assert refused(a100, topology=name) == ("bad_topology", 422, "topology")


def test_while_nodes_are_unknown_no_topology_is_chosen(a100: GpuClass) -> None:
    assert refused(a100, topology=RACKS)[0] == "bad_topology"


@pytest.mark.parametrize(
    "values", [{"max_units": 8}, {"interface": "dra", "device_class": "x.y", "device_selector": "true"}]
)
def test_classes_without_a_topology_have_none(cluster: Cluster, values: dict[str, Any]) -> None:
    fields = {"name": "x", "resource": "nvidia.com/gpu", "topology": RACKS, **values}
    with pytest.raises(Refused) as found:
        actions.create_class(slug="x", cluster=cluster, by=BY, **fields)
    assert found.value.code == "bad_topology"


def test_a_draft_is_checked_when_it_is_opened(cluster: Cluster) -> None:
    fields = {"name": "x", "resource": "nvidia.com/gpu", "topology": RACKS, "node_labels": LABELS}
    draft = actions.create_class(slug="x", cluster=cluster, by=BY, **fields)
    mirrored.seen(cluster, Node=[*ALL, node("c")], Topology=TOPOLOGIES)
    with pytest.raises(Refused) as found:
        actions.activate(draft.pk, by=BY)
    assert found.value.code == "bad_topology"
    mirrored.seen(cluster, Node=ALL, Topology=TOPOLOGIES)
    assert actions.activate(draft.pk, by=BY).topology == RACKS


def test_it_does_not_change_while_a_workload_holds_units(a100: GpuClass) -> None:
    mirrored.seen(a100.cluster, Node=ALL, Topology=TOPOLOGIES, Workload=[holding(a100)])
    assert refused(a100, topology=RACKS) == ("in_use", 409, "topology")
    # Not by a change of the labels in the same edit either.
    assert refused(a100, topology=RACKS, node_labels={**LABELS, RACK: "r1"})[0] == "in_use"
    mirrored.seen(a100.cluster, Node=ALL, Topology=TOPOLOGIES, Workload=[])
    assert actions.edit_class(a100.pk, topology=RACKS, by=BY).topology == RACKS


def test_labels_that_select_a_node_without_a_level_are_refused(a100: GpuClass) -> None:
    other = mirrored.with_metadata({"metadata": {"name": "c", "labels": {"gpu": "b"}}, "spec": {}, "status": {}})
    mirrored.seen(a100.cluster, Node=[*ALL, mirrored.ready(other)], Topology=TOPOLOGIES, Workload=[])
    actions.edit_class(a100.pk, topology=RACKS, by=BY)
    assert refused(a100, node_labels={"gpu": "b"})[0] == "bad_topology"


def test_nodes_that_come_later_without_a_label_are_told(a100: GpuClass) -> None:
    GpuClass.objects.filter(pk=a100.pk).update(topology=RACKS)
    a100.refresh_from_db()
    assert topologies_of([a100]) == {a100.pk: ClassTopology(RACKS)}
    mirrored.seen(a100.cluster, Node=[*ALL, node("c")], Topology=TOPOLOGIES)
    found = topologies_of([a100])[a100.pk]
    assert found == ClassTopology(RACKS, (RACK, HOST), 3, 1)
    assert "1 of 3 nodes lacks a label" in topology_text(found)


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (ClassTopology(RACKS), "unknown"),
        (ClassTopology(RACKS, (), 2, 0), "nothing starts"),
        (ClassTopology(RACKS, (RACK, HOST), 2, 0), f"{RACKS}: {RACK}, {HOST}"),
    ],
)
def test_what_is_unknown_is_not_told_as_none(found: ClassTopology, words: str) -> None:
    assert words in topology_text(found)
    assert "0 of" not in topology_text(found)
