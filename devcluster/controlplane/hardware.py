"""Simulated hardware: `hardware/*.yaml` → nodes that kwok simulates, ResourceSlices (DRA), DeviceClasses,
StorageClasses.

    load(Api(kubeconfig), "mixed")

Loading again updates the nodes and slices. Nodes and slices of an earlier file that the new file does not contain are
deleted; other objects of that file (`objects`) remain. Nodes that were not created from a file are not changed.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Any

from devcluster.client import yaml_files
from devcluster.client.annotations import SIMULATED
from devcluster.client.kube import Api, ApiError
from devcluster.client.types import Json
from devcluster.processes.paths import ROOT

DIRECTORY = ROOT / "devcluster" / "hardware"
FAKE = {SIMULATED: "fake"}
# Annotation with the name of the hardware file. `load` may delete only nodes and slices that have it.
ORIGIN = "devcluster/hardware"
NODE_INFO = {
    "architecture": "amd64",
    "operatingSystem": "linux",
    "osImage": "Ubuntu 24.04.3 LTS",
    "kernelVersion": "6.8.0-87-generic",
    "containerRuntimeVersion": "containerd://2.1.5",
    "kubeletVersion": "v1.36.3",
}


@dataclass(frozen=True)
class Hardware:
    """The content of a file as Kubernetes objects. Slices are complete except for the uid of their node."""

    nodes: tuple[Json, ...]
    slices: tuple[Json, ...]
    objects: tuple[Json, ...]


def names() -> list[str]:
    return sorted(path.stem for path in DIRECTORY.glob("*.yaml"))


def read(name: str) -> Hardware:
    content = yaml_files.read(DIRECTORY / f"{name}.yaml")
    groups = [(node, group) for group in content["nodes"] for node in _names_of(group)]
    return Hardware(
        nodes=tuple(_node(node, group, origin=name) for node, group in groups),
        slices=tuple(_slice(node, group["slice"], origin=name) for node, group in groups if "slice" in group),
        objects=tuple(content.get("objects", ())),
    )


def load(api: Api, name: str = "mixed") -> Hardware:
    """Applies the hardware of file `name` to the cluster. Does not wait: nodes become Ready when kwok has handled
    them.
    """
    hardware = read(name)
    for obj in hardware.objects:
        api.apply(obj)
    uids = {node["metadata"]["name"]: _put_node(api, node) for node in hardware.nodes}
    for resource_slice in hardware.slices:
        _put_slice(api, resource_slice, node_uid=uids[resource_slice["spec"]["nodeName"]])
    _remove_others(api, "resource.k8s.io/v1/resourceslices", {s["metadata"]["name"] for s in hardware.slices})
    _remove_others(api, "v1/nodes", set(uids))
    return hardware


def unready(api: Api) -> list[str]:
    """Returns the names of nodes from a hardware file that are not Ready."""
    return [
        node["metadata"]["name"]
        for node in api.list("v1/nodes")
        if ORIGIN in node["metadata"].get("annotations", {})
        and not any(c["type"] == "Ready" and c["status"] == "True" for c in node["status"].get("conditions", ()))
    ]


def node(name: str, *, devices: dict[str, int], labels: Json | None = None, **group: Any) -> Json:
    """Returns an additional node, for a test that needs its own hardware. Pass it to `add`. `load` does not delete
    it.
    """
    group = {"capacity": {"cpu": 64, "memory": "256Gi", "pods": 110}} | group
    return _node(name, {"labels": [labels or {}], "devices": devices, **group}, origin="")


def add(api: Api, node: Json) -> None:
    _put_node(api, node)


# from YAML to objects


def _names_of(group: Json) -> list[str]:
    return [group["name"].replace("{n}", str(n)) for n in range(1, group.get("count", 1) + 1)]


def _node(name: str, group: Json, *, origin: str) -> Json:
    labels = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
    for labels_of_set in group.get("labels", ()):
        labels |= _flat(labels_of_set)
    capacity = {key: str(value) for key, value in (group["capacity"] | group.get("devices", {})).items()}
    allocatable = capacity | {key: str(value) for key, value in group.get("allocatable", {}).items()}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels, "annotations": FAKE | ({ORIGIN: origin} if origin else {})},
        "spec": {"taints": group.get("taints", [])},
        "status": {"capacity": capacity, "allocatable": allocatable, "nodeInfo": NODE_INFO},
    }


def _flat(labels: Json, prefix: str = "") -> dict[str, str]:
    flat: dict[str, str] = {}
    for key, value in labels.items():
        if isinstance(value, dict):
            flat |= _flat(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = str(value).lower() if isinstance(value, bool) else str(value)
    return flat


def _slice(node_name: str, group: Json, *, origin: str) -> Json:
    driver = group["driver"]
    devices = [_device(node_name, minor, group, own) for minor, own in enumerate(group["devices"])]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"{node_name}-{driver}", "annotations": {ORIGIN: origin}},
        "spec": {
            "driver": driver,
            "nodeName": node_name,
            "pool": {"name": node_name, "generation": 1, "resourceSliceCount": 1},
            "devices": devices,
        },
    }


def _device(node_name: str, minor: int, group: Json, own: Json) -> Json:
    """`own`: attributes of this device, and under `capacity` what it has of its own, as a slice of a GPU does."""
    capacity = {**group["capacity"], **own.get("capacity", {})}
    attributes = {**group["attributes"], **own, "uuid": gpu_uuid(node_name, minor)}
    attributes.pop("capacity", None)
    return {
        "name": f"gpu-{minor}",
        "attributes": {
            key: value if isinstance(value, dict) else {"string": value} for key, value in attributes.items()
        },
        "capacity": {key: {"value": value} for key, value in capacity.items()},
    }


def gpu_uuid(node_name: str, minor: int) -> str:
    """The UUID depends only on the node and the number of the GPU, so it stays the same when the hardware is loaded
    again.
    """
    return f"GPU-{uuid.uuid5(uuid.NAMESPACE_DNS, f'gpu-{minor}.{node_name}')}"


# from objects to the cluster


def _put_node(api: Api, node: Json) -> str:
    """Creates the node, or updates an existing one. Returns its uid.

    The node is created together with its status, as a kubelet registers it: kwok would give a node without allocatable
    resources a thousand CPUs.
    """
    name = node["metadata"]["name"]
    try:
        return str(api.create(node)["metadata"]["uid"])
    except ApiError as error:
        if error.status != 409:
            raise
    old = api.get("v1/nodes", name)
    labels = dict.fromkeys(old["metadata"]["labels"]) | node["metadata"]["labels"]
    # This removes the taints that the node controller set (not-ready, unreachable); it sets them again if they still
    # apply.
    api.patch("v1/nodes", name, {"metadata": node["metadata"] | {"labels": labels}, "spec": node["spec"]})
    sizes = {
        key: dict.fromkeys(old["status"].get(key, {})) | node["status"][key] for key in ("capacity", "allocatable")
    }
    api.patch_status("v1/nodes", name, sizes)
    return str(old["metadata"]["uid"])


def _put_slice(api: Api, resource_slice: Json, *, node_uid: str) -> None:
    """The node owns its slice, as with the real DRA driver, so the slice is deleted together with its node."""
    owner = {"apiVersion": "v1", "kind": "Node", "name": resource_slice["spec"]["nodeName"], "uid": node_uid}
    api.apply(resource_slice | {"metadata": resource_slice["metadata"] | {"ownerReferences": [owner]}})


def _remove_others(api: Api, resource: str, keep: set[str]) -> None:
    for obj in api.list(resource):
        if ORIGIN in obj["metadata"].get("annotations", {}) and obj["metadata"]["name"] not in keep:
            api.delete(resource, obj["metadata"]["name"])
