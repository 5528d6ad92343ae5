"""Records of nodes, and of Karpenter's pools and orders of nodes. Pure."""

from __future__ import annotations

import hashlib
from typing import Any

from cluster.client.managed_fields import writer_of
from cluster.mirror.records.quantities import amount, amounts
from cluster.mirror.records.types import Raw, RecordContent, condition_records, record_only, truncated

IMAGES_LIMIT = 50

IMAGE_NAMES_LIMIT = 3

# Excluded: hundreds of processor flags, and labels that change although nothing happened.
_NOISY_LABELS = ("feature.node.kubernetes.io/", "beta.kubernetes.io/", "nvidia.com/gfd.timestamp")

# Labels that decide the MIG layout and the sharing of a node's GPUs, and the state of a driver upgrade: shown with time
# and manager.
_LAYOUT_LABELS = (
    "nvidia.com/mig.config",
    "nvidia.com/mig.config.state",
    "nvidia.com/device-plugin.config",
    "nvidia.com/gpu-driver-upgrade-state",
)


_CORDON_TAINT = "node.kubernetes.io/unschedulable"


def node_record(raw: Raw) -> RecordContent:
    """labels (all but processor flags), taints [{key, value, effect}], capacity and allocatable {resource: amount},
    ready_since, ready_reason, ready_message, pressure [condition types that are True], kubelet (version),
    writers {layout label: {manager, at}}, see `_label_writers`; images {key: MiB}, see `_images`; cordon {manager, at},
    None if it is not cordoned, see `_cordon`.
    """
    spec, status = raw.get("spec") or {}, raw.get("status") or {}
    by_type = {condition["type"]: condition for condition in status.get("conditions") or []}
    ready = by_type.get("Ready", {})
    record = {
        "labels": {k: v for k, v in (raw["metadata"].get("labels") or {}).items() if not k.startswith(_NOISY_LABELS)},
        "taints": _taints(spec),
        "capacity": amounts(status.get("capacity") or {}),
        "allocatable": amounts(status.get("allocatable") or {}),
        "ready_since": ready.get("lastTransitionTime"),
        "ready_reason": ready.get("reason", ""),
        "ready_message": truncated(ready.get("message")),
        "pressure": sorted(name for name, c in by_type.items() if name != "Ready" and c.get("status") == "True"),
        "kubelet": (status.get("nodeInfo") or {}).get("kubeletVersion", ""),
        "writers": _label_writers(raw["metadata"].get("managedFields") or []),
        "images": _images(status.get("images") or []),
        "cordon": _cordon(spec, raw["metadata"].get("managedFields") or []),
    }
    columns = {"schedulable": not spec.get("unschedulable", False), "ready": ready.get("status") == "True"}
    return RecordContent(columns, record)


def node_pool_record(raw: Raw) -> RecordContent:
    """What a new node has: labels, requirements [{key, operator, values}], taints. limits and resources, which its
    nodes have together: {resource: amount}, also of `nodes`; resources is null until Karpenter has counted them.
    is_static: it has a fixed number of nodes. conditions.
    """
    spec, status = raw.get("spec") or {}, raw.get("status") or {}
    template = spec.get("template") or {}
    resources = status.get("resources")
    return record_only(
        labels=(template.get("metadata") or {}).get("labels") or {},
        limits=_with_nodes(spec.get("limits") or {}),
        is_static=spec.get("replicas") is not None,
        resources=None if resources is None else _with_nodes(resources),
        conditions=condition_records(status),
        **_new_node(template.get("spec") or {}),
    )


def gpu_operator_record(raw: Raw) -> RecordContent:
    """Of a ClusterPolicy or NVIDIADriver: state ("ready", "notReady", "ignored", "disabled"; "" if not reported),
    conditions; version of the driver, "" for the operator's own.
    """
    spec, status = raw.get("spec") or {}, raw.get("status") or {}
    driver = spec.get("driver") or {} if raw.get("kind") == "ClusterPolicy" else spec
    return record_only(
        state=status.get("state", ""),
        version=str(driver.get("version") or ""),
        conditions=condition_records(status),
    )


def node_claim_record(raw: Raw) -> RecordContent:
    """pool, labels, requirements and taints of the node, requests of the pods that it was ordered for, capacity (empty
    until it is launched), conditions.
    """
    spec, status = raw.get("spec") or {}, raw.get("status") or {}
    labels = raw["metadata"].get("labels") or {}
    return record_only(
        pool=labels.get("karpenter.sh/nodepool", ""),
        labels=labels,
        requests=amounts((spec.get("resources") or {}).get("requests") or {}),
        capacity=amounts(status.get("capacity") or {}),
        conditions=condition_records(status),
        **_new_node(spec),
    )


def _new_node(spec: Raw) -> dict[str, Any]:
    wanted = spec.get("requirements") or []
    requirements = [{"key": w["key"], "operator": w["operator"], "values": w.get("values") or []} for w in wanted]
    return {"requirements": requirements, "taints": _taints(spec)}


def _with_nodes(quantities: Raw) -> dict[str, int]:
    nodes = {"nodes": amount("nodes", quantities["nodes"])} if "nodes" in quantities else {}
    return {**amounts(quantities), **nodes}


def _taints(spec: Raw) -> list[dict[str, str]]:
    return [
        {"key": taint["key"], "value": taint.get("value", ""), "effect": taint.get("effect", "")}
        for taint in spec.get("taints") or []
    ]


def _label_writers(managed_fields: list[Raw]) -> dict[str, dict[str, str]]:
    """Returns the label's field manager and the time of that manager's last write: the value is at least that old."""
    found: dict[str, dict[str, str]] = {}
    for entry in sorted(managed_fields, key=lambda entry: entry.get("time") or ""):
        labels = ((entry.get("fieldsV1") or {}).get("f:metadata") or {}).get("f:labels") or {}
        for name in _LAYOUT_LABELS:
            if f"f:{name}" in labels:
                found[name] = {"manager": entry.get("manager", ""), "at": entry.get("time") or ""}
    return found


def _cordon(spec: Raw, managed_fields: list[Raw]) -> dict[str, str] | None:
    """Returns the field manager that cordoned the node, and when; "" where the node does not say it.

    The node controller adds its taint within a second, with the time. The time of a manager's entry is that of its last
    write to any field, so it only counts without the taint.
    """
    if not spec.get("unschedulable"):
        return None
    writer = writer_of("spec.unschedulable", managed_fields) or {}
    taint: Raw = next((one for one in spec.get("taints") or [] if one["key"] == _CORDON_TAINT), {})
    return {"manager": writer.get("manager", ""), "at": taint.get("timeAdded") or writer.get("time") or ""}


def _images(images: list[Raw]) -> dict[str, int]:
    """MiB by short image key: a kubelet lists its 50 largest images, each by several names up to 200 letters."""
    found: dict[str, int] = {}
    for image in images[:IMAGES_LIMIT]:
        mib = round(int(image.get("sizeBytes") or 0) / 2**20)
        found |= {image_key(name): mib for name in (image.get("names") or [])[:IMAGE_NAMES_LIMIT]}
    return found


def image_key(reference: str) -> str:
    """One key for all spellings of an image: `python` is `docker.io/library/python:latest`; a digest replaces a tag."""
    name, _, digest = reference.partition("@")
    host, slash, path = name.partition("/")
    if not slash or not ("." in host or ":" in host or host == "localhost"):
        host, path = "docker.io", name if slash else f"library/{name}"
    repository, colon, tag = path.rpartition(":")
    repository, tag = (repository, tag) if colon else (path, "latest")
    full = f"{host}/{repository}@{digest}" if digest else f"{host}/{repository}:{tag}"
    return hashlib.blake2b(full.encode(), digest_size=6).hexdigest()
