"""Nodes and slices from the hardware files, pods on them, and the answer of their exporter, parsed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from devcluster.client.types import Json
from devcluster.controlplane import hardware
from devcluster.monitoring import amd_text, dcgm_text
from devcluster.monitoring.assignment import Assignments
from devcluster.monitoring.devices import NVIDIA, GpuNode, gpu_node
from devcluster.monitoring.exposition import text_of
from devcluster.monitoring.readings import faults_of, read_card

AT = 1_800_000_000.0
CARD = "nvidia.com/gpu"


def gpus_of(name: str, file: str = "mixed") -> GpuNode:
    read = hardware.read(file)
    node = next(one for one in read.nodes if one["metadata"]["name"] == name)
    found = gpu_node(node, [one for one in read.slices if one["spec"]["nodeName"] == name])
    assert found is not None
    return found


def pod(name: str, resource: str = CARD, units: int = 1, *, node: str = "a100-1", **changes: Any) -> Json:
    container = {"name": "job", "resources": {"limits": {resource: str(units), "cpu": "1500m"}}}
    return {
        "metadata": {
            "name": name,
            "namespace": "team-a",
            "uid": f"uid-{name}",
            "creationTimestamp": changes.get("created", "2027-01-15T07:00:00Z"),
            "labels": changes.get("labels", {}),
            "annotations": changes.get("annotations", {}),
        },
        "spec": {"nodeName": node, "containers": [container | {"env": changes.get("env", [])}]},
        "status": {"phase": changes.get("phase", "Running"), "startTime": "2027-01-15T07:30:00Z"},
    }


def notebook(name: str, **changes: Any) -> Json:
    return pod(name, labels={"gpu-portal/kind": "notebook"}, **changes)


def text(
    node: GpuNode,
    pods: Iterable[Json] = (),
    *,
    claims: Iterable[Json] = (),
    at: float = AT,
    cores: Mapping[str, float] | None = None,
    faults: str = "",
) -> str:
    occupants = Assignments().update(node, pods, claims)
    known = faults_of(faults)
    readings = [
        read_card(card, occupants, at=at, cores=cores or {}, faults=known.get(card.index)) for card in node.cards
    ]
    families = (dcgm_text if node.vendor == NVIDIA else amd_text).families
    return text_of(families(node, occupants, readings, {card.uuid: 1.5 for card in node.cards}))


def samples(*given: Any, **more: Any) -> dict[str, list[Sample]]:
    """By name; arguments as of `text`. The parser adds `_total` to the name of a counter."""
    found: dict[str, list[Sample]] = {}
    for family in text_string_to_metric_families(text(*given, **more)):
        for sample in family.samples:
            name = sample.name.removesuffix("_total") if family.type == "counter" else sample.name
            found.setdefault(name, []).append(sample)
    return found


def values(found: Iterable[Sample], label: str = "gpu") -> dict[str, float]:
    return {sample.labels[label]: sample.value for sample in found}
