"""A mirror with as many nodes and pods as a test wants, written as rows: the simulated hardware, over and over."""

from __future__ import annotations

import functools
from typing import Any

from cluster import mirror_rows
from cluster.kinds import KINDS
from cluster.models import Cluster
from devcluster import hardware
from tests import mirrored

# One of each: whole cards, MIG mixed and single, time slices, MPS, DRA, AMD, Intel, cpu.
KINDS_OF_NODES = 10
PODS_PER_NODE = 8
Raw = dict[str, Any]


def crowd(cluster: Cluster, *, nodes: int) -> None:
    """Every node has eight pods: two that hold devices (where there are any) and six strangers with cpu alone."""
    mirrored.seen(cluster)
    rows: dict[str, list[Raw]] = {"Node": [], "Pod": [], "ResourceSlice": [], "ResourceClaim": []}
    for number in range(nodes):
        for kind, raw in _of_node(number):
            rows[kind].append(mirror_rows.row(cluster.pk, KINDS[kind].seen(raw)))
    for kind, found in rows.items():
        mirror_rows.upsert(KINDS[kind].table, found)


@functools.cache
def templates() -> list[tuple[Raw, list[Raw]]]:
    """The first node of every kind of hardware with its slices. Read once: the file takes a second."""
    seen = hardware.read("mixed")
    found: dict[tuple[str, ...], Raw] = {}
    for node in seen.nodes:
        labels = node["metadata"].get("labels", {})
        devices = [name for name in node["status"]["allocatable"] if "/" in name]
        sharing = labels.get("nvidia.com/gpu.sharing-strategy", "")
        found.setdefault((*devices, sharing, labels.get("nvidia.com/gpu.product", "")), node)
    names = [node["metadata"]["name"] for node in found.values()]
    slices = [[one for one in seen.slices if one["spec"]["nodeName"] == name] for name in names]
    return list(zip(found.values(), slices, strict=True))[:KINDS_OF_NODES]


def _of_node(number: int) -> list[tuple[str, Raw]]:
    template, slices = templates()[number % len(templates())]
    name = f"node-{number:04}"
    labels = {**template["metadata"].get("labels", {}), "kubernetes.io/hostname": name}
    node = mirrored.ready({**template, "metadata": {**template["metadata"], "name": name, "labels": labels}})
    found = [("Node", node)]
    devices = [(one, int(units)) for one, units in template["status"]["allocatable"].items() if "/" in one]
    resource, units = next(((one, units) for one, units in devices if units), ("cpu", 2))
    for index in range(PODS_PER_NODE):
        asked = {resource: max(1, units // 4)} if index < 2 else {}
        pod = mirrored.pod(
            f"pod-{number:04}-{index}", node=name, namespace=f"team-{number % 20}", **{"cpu": 1, **asked}
        )
        found.append(("Pod", pod))
    return [*found, *_devices(slices, name)]


def _devices(slices: list[Raw], name: str) -> list[tuple[str, Raw]]:
    """Its slices under the new name; one device of each is held by a claim."""
    found: list[tuple[str, Raw]] = []
    for one in slices:
        spec = one["spec"]
        metadata = {**one["metadata"], "name": f"{name}-{one['metadata']['name']}"}
        pool = {**spec["pool"], "name": name}
        copied = {**one, "metadata": metadata, "spec": {**spec, "nodeName": name, "pool": pool}}
        found.append(("ResourceSlice", mirrored.with_metadata(copied)))
        held = {"request": "gpu", "driver": spec["driver"], "pool": name, "device": spec["devices"][0]["name"]}
        claim = {
            "metadata": {"name": f"claim-{name}", "namespace": "team-0"},
            "spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": spec["driver"]}}]}},
            "status": {"allocation": {"devices": {"results": [held]}}},
        }
        found.append(("ResourceClaim", mirrored.with_metadata(claim)))
    return found
