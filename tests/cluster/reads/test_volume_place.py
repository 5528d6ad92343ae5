"""Which nodes can mount a volume, as Kubernetes matches its node affinity, and how a sentence names them."""

from __future__ import annotations

from typing import Any

import pytest

from cluster.models import Cluster
from cluster.reads.labelled_nodes import labels_by_node
from cluster.reads.volume_place import EVERYWHERE, VolumePlace
from tests.support.rows import mirrored

ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
Term = dict[str, Any]


def term(key: str, *values: str, operator: str = "In", field: str = "matchExpressions") -> Term:
    return {field: [{"key": key, "operator": operator, "values": [*values]}]}


def place(*terms: Term) -> VolumePlace:
    return VolumePlace(terms)


B_OR_C = place(term(ZONE, "b"), term(ZONE, "c"))
BOTH = place({"matchExpressions": [*term(ZONE, "b")["matchExpressions"], *term("disk", "ssd")["matchExpressions"]]})


@pytest.mark.parametrize(
    ("where", "labels", "is_there"),
    [
        (EVERYWHERE, {}, True),
        (B_OR_C, {ZONE: "c"}, True),
        (B_OR_C, {ZONE: "a"}, False),
        (B_OR_C, {}, False),
        (BOTH, {ZONE: "b", "disk": "ssd"}, True),
        (BOTH, {ZONE: "b"}, False),
        (place(term(ZONE, "b", operator="NotIn")), {ZONE: "a"}, True),
        (place(term(ZONE, "b", operator="NotIn")), {}, True),
        (place(term(ZONE, "b", operator="NotIn")), {ZONE: "b"}, False),
        (place(term("disk", operator="Exists")), {"disk": ""}, True),
        (place(term("disk", operator="Exists")), {}, False),
        (place(term("disk", operator="DoesNotExist")), {"disk": "x"}, False),
        (place(term("disk", operator="DoesNotExist")), {}, True),
        (place(term("slots", "3", operator="Gt")), {"slots": "4"}, True),
        (place(term("slots", "3", operator="Gt")), {"slots": "3"}, False),
        (place(term("slots", "3", operator="Lt")), {"slots": "2"}, True),
        (place(term("slots", "3", operator="Lt")), {"slots": "many"}, False),
        (place(term("metadata.name", "n1", field="matchFields")), {}, True),
        (place(term("metadata.name", "n2", field="matchFields")), {}, False),
    ],
)
def test_as_kubernetes_matches_it(where: VolumePlace, labels: dict[str, str], is_there: bool) -> None:
    assert where.admits("n1", labels) is is_there


@pytest.mark.parametrize(
    ("where", "words"),
    [
        (B_OR_C, "in zones b, c"),
        (place(term("topology.ebs.csi.aws.com/zone", "eu-1a")), "in zone eu-1a"),
        (place(term("topology.kubernetes.io/region", "eu")), "in region eu"),
        (place({"matchExpressions": [*B_OR_C.terms[0]["matchExpressions"], *term(HOST, "n1")["matchExpressions"]]}),
         "on node n1"),
        (place(term("metadata.name", "n1", field="matchFields")), "on node n1"),
        (place(term(HOST, "n1", "n2", "n3", "n4", "n5")), "on nodes n1, n2, n3 and 2 more"),
        (place(term(ZONE, "b", operator="NotIn")), "on some of the nodes"),
        (place(term("disk", "ssd")), "on some of the nodes"),
    ],
)  # fmt: skip
def test_a_sentence_names_the_narrowest_place(where: VolumePlace, words: str) -> None:
    assert where.words == words


@pytest.mark.django_db
def test_the_labels_that_decide_are_read_of_all_nodes_of_a_class(
    cluster: Cluster, django_assert_num_queries: Any
) -> None:
    mirrored.hardware_seen(cluster)
    product = {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}
    with django_assert_num_queries(1):
        assert labels_by_node(cluster.pk, [product, {HOST: "cpu-1"}], [HOST, ZONE]) == {
            "h100": {HOST: "h100"}, "cpu-1": {HOST: "cpu-1"},
        }  # fmt: skip
    assert labels_by_node(cluster.pk, [product], [ZONE]) == {"h100": {}}
    assert labels_by_node(cluster.pk, [], [ZONE]) == {}
