"""Pods go only where their volume can be mounted: its alternatives, each with all other conditions."""

from __future__ import annotations

from dataclasses import replace

from cluster.manifests import run as manifests
from cluster.manifests.metadata import Manifest
from cluster.manifests.node_affinity import NodeTerms, required_affinity
from cluster.manifests.run_spec import RunSpec
from cluster.manifests.site import DEFAULT
from tests.cluster.manifests.test_manifests_run import CPU, JOB

IN_B: Manifest = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["b"]}
IN_C: Manifest = {**IN_B, "values": ["c"]}
ZONES: NodeTerms = [{"matchExpressions": [IN_B]}, {"matchExpressions": [IN_C]}]
BY_NAME: Manifest = {"key": "metadata.name", "operator": "In", "values": ["n1"]}


def terms(spec: RunSpec, volume_nodes: NodeTerms = ()) -> list[Manifest]:
    pod = manifests.job(spec, DEFAULT, volume_nodes=volume_nodes)["spec"]["template"]["spec"]
    affinity = pod["affinity"]["nodeAffinity"]
    assert affinity.keys() == {"requiredDuringSchedulingIgnoredDuringExecution"}
    found: list[Manifest] = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    return found


def test_the_nodes_of_the_volume_are_required() -> None:
    assert terms(replace(JOB, claim="data"), ZONES) == ZONES
    assert terms(JOB, [{"matchFields": [BY_NAME]}]) == [{"matchFields": [BY_NAME]}]


def test_a_volume_that_is_everywhere_requires_nothing() -> None:
    pod = manifests.job(replace(JOB, claim="data"))["spec"]["template"]["spec"]
    assert "affinity" not in pod
    assert required_affinity((), []) == {}


def test_without_a_gpu_each_alternative_also_stays_off_gpu_nodes() -> None:
    (off,) = terms(CPU)
    b, c = terms(CPU, ZONES)
    assert b["matchExpressions"] == [*off["matchExpressions"], IN_B]
    assert c["matchExpressions"] == [*off["matchExpressions"], IN_C]
    (named,) = terms(CPU, [{"matchFields": [BY_NAME]}])
    assert named == {**off, "matchFields": [BY_NAME]}
