"""A mirror with any number of nodes and pods, written as rows: the simulated hardware, repeated."""

from __future__ import annotations

import functools
from typing import Any

from django.db import connection

from catalog.classes.proposals import actions
from catalog.discovery import queries
from catalog.models import GpuClass
from cluster.mirror import tables
from cluster.mirror.records.kinds import KINDS
from cluster.models import Cluster, MirrorPod
from devcluster.controlplane import hardware
from tests.support.rows import make, mirrored

# One of each: whole GPUs, MIG mixed and single, time slices, MPS, DRA, AMD, Intel, cpu.
KINDS_OF_NODES = 10
PODS_PER_NODE = 8
TEAMS = 5
Raw = dict[str, Any]


def crowd(cluster: Cluster, *, nodes: int) -> list[GpuClass]:
    """Every node has eight pods: two of teams that hold devices or cores, and six foreign ones with cpu alone.

    Returns the classes that discovery proposes for them, active. Statistics are fresh, as with autovacuum.
    """
    mirrored.seen(cluster)
    mirrored.device_classes_tried(cluster)
    rows: dict[str, list[Raw]] = {"Node": [], "Pod": [], "ResourceSlice": [], "ResourceClaim": []}
    for number in range(nodes):
        for kind, raw in _of_node(number):
            rows[kind].append(tables.row(cluster.pk, KINDS[kind].seen(raw)))
    for kind, found in rows.items():
        tables.upsert(KINDS[kind].table, found)
    classes = _classes(cluster)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    return classes


def _classes(cluster: Cluster) -> list[GpuClass]:
    found = queries.discover_cluster(cluster)
    assert found is not None
    classes = [make.gpu_class(cluster, slug=one.slug, **actions.class_values(one)) for one in found.proposals]
    for number, (node, _slices) in enumerate(templates()):
        labels, offers = node["metadata"].get("labels", {}), node["status"]["allocatable"]
        for one in classes:
            if one.resource in offers and one.node_labels.items() <= labels.items():
                MirrorPod.objects.filter(cluster_id=cluster.pk, gpu_class=f"kind-{number}").update(gpu_class=one.slug)
    return classes


@functools.cache
def templates() -> list[tuple[Raw, list[Raw]]]:
    """The first node of every kind of hardware with its ResourceSlices. Cached: reading the file takes a second."""
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
        of_class = f"kind-{number % len(templates())}" if index < 2 else ""
        name_of_pod, team = f"pod-{number:04}-{index}", f"team-{number // len(templates()) % TEAMS}"
        pod = mirrored.pod(name_of_pod, node=name, namespace=team, gpu_class=of_class, **{"cpu": 1, **asked})
        found.append(("Pod", pod))
    return [*found, *_devices(slices, name)]


def _devices(slices: list[Raw], name: str) -> list[tuple[str, Raw]]:
    """Its ResourceSlices under the new name; a claim holds one device of each."""
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
