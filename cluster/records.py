"""Raw Kubernetes JSON → a small record and the columns of its mirror row. Pure: no database, no cluster, no clock.

A pod has 5 KB and a real node 50 KB, half of it managedFields; a record has what pages and reconcilers read, a few
hundred bytes. A record must not contain what changes without meaning (heartbeats, versions): an equal record is not
written. Times stay the API server's text. Each reader documents its keys; `observed.py` gives them types, `kinds.py`
says which reader serves which kind.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from cluster.ownership import Ownership, ownership

Raw = dict[str, Any]

OWNER_LABEL = "gpu-portal/owner"
MANAGED_LABEL = "app.kubernetes.io/managed-by"
MANAGED_BY = "gpu-portal"
# Kueue lists every flavor in one sentence and explanations parse it; others only have to be read by people.
KUEUE_TEXT_LIMIT = 4096
TEXT_LIMIT = 1024
IMAGES_LIMIT = 50
IMAGE_NAMES_LIMIT = 3

_QUANTITY = re.compile(r"([+-]?[0-9.]+)(?:[eE]([+-]?[0-9]+)|([KMGTPE]i|[numkMGTPE])?)")
_SUFFIXES = {
    "n": Decimal("1e-9"), "u": Decimal("1e-6"), "m": Decimal("1e-3"), "k": Decimal(10**3),
    "M": Decimal(10**6), "G": Decimal(10**9), "T": Decimal(10**12), "P": Decimal(10**15), "E": Decimal(10**18),
    "Ki": Decimal(2**10), "Mi": Decimal(2**20), "Gi": Decimal(2**30), "Ti": Decimal(2**40),
    "Pi": Decimal(2**50), "Ei": Decimal(2**60),
}  # fmt: skip
# Hundreds of processor flags, and what changes although nothing did.
_NOISY_LABELS = ("feature.node.kubernetes.io/", "beta.kubernetes.io/", "nvidia.com/gfd.timestamp")
# Labels that decide how a node's cards are cut and shared: people ask since when, and by whom.
_LAYOUT_LABELS = ("nvidia.com/mig.config", "nvidia.com/mig.config.state", "nvidia.com/device-plugin.config")
_POD_LABELS = ("gpu-portal/", "kueue.x-k8s.io/", "batch.kubernetes.io/job-name", "batch.kubernetes.io/job-completion")


@dataclass(frozen=True, slots=True)
class Content:
    """What a reader returns: typed columns of the kind's table, the record, and whether the row is worth keeping."""

    columns: dict[str, Any]
    record: dict[str, Any]
    is_kept: bool = True


@dataclass(frozen=True, slots=True)
class Seen:
    """One object as it was seen at `resource_version`. `namespace` is empty for cluster-scoped kinds."""

    kind: str
    namespace: str
    name: str
    uid: str
    resource_version: int
    created_at: str
    owner: str = ""
    is_ours: bool = False
    deleting_since: str | None = None
    columns: dict[str, Any] = field(default_factory=dict)
    record: dict[str, Any] = field(default_factory=dict)
    is_kept: bool = True
    # Who owns which fields; only for objects that the portal applies, even if somebody took our labels off.
    ownership: Ownership | None = None

    def digest(self) -> int:
        """Of everything that a row shows except its version: equal digests need no write."""
        shown = (self.name, self.uid, self.owner, self.deleting_since, self.columns, self.record)
        return int.from_bytes(hashlib.blake2b(json.dumps(shown, sort_keys=True).encode(), digest_size=8).digest())


def seen(kind: str, raw: Raw, content: Content, *, is_applied: bool) -> Seen:
    """`is_applied`: a kind that the portal keeps applying, so that another writer matters."""
    metadata = raw["metadata"]
    labels = metadata.get("labels") or {}
    owner = labels.get(OWNER_LABEL, "")[:120]
    return Seen(
        kind=kind,
        namespace=metadata.get("namespace", ""),
        name=metadata["name"],
        uid=metadata.get("uid", ""),
        resource_version=int(metadata.get("resourceVersion") or 0),
        created_at=metadata.get("creationTimestamp") or "1970-01-01T00:00:00Z",
        owner=owner,
        is_ours=labels.get(MANAGED_LABEL) == MANAGED_BY,
        deleting_since=metadata.get("deletionTimestamp"),
        columns=content.columns,
        record=content.record,
        is_kept=content.is_kept,
        ownership=ownership(metadata.get("managedFields") or []) if is_applied else None,
    )


# ---- nodes -------------------------------------------------------------------------------------------------------


def node(raw: Raw) -> Content:
    """labels (all but processor flags), taints [{key, value, effect}], capacity and allocatable {resource: amount},
    ready_since, ready_reason, ready_message, pressure [condition types that are True], kubelet (version),
    writers {layout label: {manager, at}}, see `_label_writers`; images {key: MiB}, see `_images`.
    """
    spec, status = raw.get("spec") or {}, raw.get("status") or {}
    by_type = {condition["type"]: condition for condition in status.get("conditions") or []}
    ready = by_type.get("Ready", {})
    record = {
        "labels": {k: v for k, v in (raw["metadata"].get("labels") or {}).items() if not k.startswith(_NOISY_LABELS)},
        "taints": [
            {"key": taint["key"], "value": taint.get("value", ""), "effect": taint.get("effect", "")}
            for taint in spec.get("taints") or []
        ],
        "capacity": amounts(status.get("capacity") or {}),
        "allocatable": amounts(status.get("allocatable") or {}),
        "ready_since": ready.get("lastTransitionTime"),
        "ready_reason": ready.get("reason", ""),
        "ready_message": short(ready.get("message")),
        "pressure": sorted(name for name, c in by_type.items() if name != "Ready" and c.get("status") == "True"),
        "kubelet": (status.get("nodeInfo") or {}).get("kubeletVersion", ""),
        "writers": _label_writers(raw["metadata"].get("managedFields") or []),
        "images": _images(status.get("images") or []),
    }
    columns = {"schedulable": not spec.get("unschedulable", False), "ready": ready.get("status") == "True"}
    return Content(columns, record)


def _label_writers(managed_fields: list[Raw]) -> dict[str, dict[str, str]]:
    """Who holds the label, and when that manager last changed anything: its value is at least as old."""
    found: dict[str, dict[str, str]] = {}
    for entry in sorted(managed_fields, key=lambda entry: entry.get("time") or ""):
        labels = ((entry.get("fieldsV1") or {}).get("f:metadata") or {}).get("f:labels") or {}
        for name in _LAYOUT_LABELS:
            if f"f:{name}" in labels:
                found[name] = {"manager": entry.get("manager", ""), "at": entry.get("time") or ""}
    return found


def _images(images: list[Raw]) -> dict[str, int]:
    """A kubelet names its 50 largest images, each by several names of up to 200 letters: keys keep a record small."""
    found: dict[str, int] = {}
    for image in images[:IMAGES_LIMIT]:
        mib = round(int(image.get("sizeBytes") or 0) / 2**20)
        found |= {image_key(name): mib for name in (image.get("names") or [])[:IMAGE_NAMES_LIMIT]}
    return found


def image_key(reference: str) -> str:
    """Of an image, however it is written: `python` is `docker.io/library/python:latest`, and a digest says it all."""
    name, _, digest = reference.partition("@")
    host, slash, path = name.partition("/")
    if not slash or not ("." in host or ":" in host or host == "localhost"):
        host, path = "docker.io", name if slash else f"library/{name}"
    repository, colon, tag = path.rpartition(":")
    repository, tag = (repository, tag) if colon else (path, "latest")
    full = f"{host}/{repository}@{digest}" if digest else f"{host}/{repository}:{tag}"
    return hashlib.blake2b(full.encode(), digest_size=6).hexdigest()


# ---- pods --------------------------------------------------------------------------------------------------------


def pod(raw: Raw) -> Content:
    """Everybody's: requests {resource: amount}, as the scheduler counts them. Ended pods of others are not kept.

    Ours also: labels, conditions, reason, message, containers and init_containers (see `_container`), ip, priority,
    gates [names], claims [names of ResourceClaims], job_uid, started_at.
    """
    metadata, spec, status = raw["metadata"], raw.get("spec") or {}, raw.get("status") or {}
    labels = metadata.get("labels") or {}
    phase = status.get("phase", "Pending")
    columns = {
        "node": spec.get("nodeName", ""),
        "phase": phase,
        "run": labels.get("gpu-portal/run", ""),
        "gpu_class": labels.get("gpu-portal/class", ""),
    }
    record: dict[str, Any] = {"requests": pod_requests(spec)}
    if OWNER_LABEL not in labels:
        return Content(columns, record, is_kept=phase not in ("Succeeded", "Failed"))
    record |= {
        "labels": {key: value for key, value in labels.items() if key.startswith(_POD_LABELS)},
        "conditions": conditions(status),
        "reason": status.get("reason", ""),
        "message": short(status.get("message")),
        "containers": [_container(entry) for entry in status.get("containerStatuses") or []],
        "init_containers": [_container(entry) for entry in status.get("initContainerStatuses") or []],
        "ip": status.get("podIP", ""),
        "priority": spec.get("priority", 0),
        "gates": [gate["name"] for gate in spec.get("schedulingGates") or []],
        "claims": sorted(
            entry["resourceClaimName"]
            for entry in status.get("resourceClaimStatuses") or []
            if entry.get("resourceClaimName")
        ),
        "job_uid": controller_uid(metadata, "Job"),
        "started_at": status.get("startTime"),
    }
    return Content(columns, record)


def _container(raw: Raw) -> dict[str, Any]:
    """name, ready, restarts, state (waiting, running, terminated or ""), reason, message, since, exit_code, ended_at;
    last_reason and last_exit_code of the previous attempt in the same pod.
    """
    state_name, state = _state(raw.get("state"))
    _, last = _state(raw.get("lastState"))
    return {
        "name": raw["name"],
        "ready": raw.get("ready", False),
        "restarts": raw.get("restartCount", 0),
        "state": state_name,
        "reason": state.get("reason", ""),
        # Last words end with what matters.
        "message": short(state.get("message"), None if state_name == "terminated" else TEXT_LIMIT)[-TEXT_LIMIT:],
        "since": state.get("startedAt"),
        "exit_code": state.get("exitCode"),
        "ended_at": state.get("finishedAt"),
        "last_reason": last.get("reason", ""),
        "last_exit_code": last.get("exitCode"),
    }


def _state(raw: Raw | None) -> tuple[str, Raw]:
    for name in ("waiting", "running", "terminated"):
        if raw and raw.get(name) is not None:
            return name, raw[name]
    return "", {}


def pod_requests(spec: Raw) -> dict[str, int]:
    """The larger of what runs together and what each init container needs beside the sidecars started before it."""
    together: dict[str, int] = {}
    for container in spec.get("containers") or []:
        _add(together, _requests(container))
    sidecars: dict[str, int] = {}
    starting: dict[str, int] = {}
    for container in spec.get("initContainers") or []:
        needs = _requests(container)
        if container.get("restartPolicy") == "Always":
            _add(sidecars, needs)
            needs = dict(sidecars)
        else:
            _add(needs, sidecars)
        starting = _largest(starting, needs)
    _add(together, sidecars)
    total = _largest(together, starting) | _requests(spec)
    _add(total, amounts(spec.get("overhead") or {}))
    return total


def _requests(container: Raw) -> dict[str, int]:
    resources = container.get("resources") or {}
    return amounts((resources.get("limits") or {}) | (resources.get("requests") or {}))


def _add(total: dict[str, int], more: Mapping[str, int]) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


def _largest(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    return {name: max(one.get(name, 0), other.get(name, 0)) for name in {**one, **other}}


# ---- Jobs and Kueue's Workloads ----------------------------------------------------------------------------------


def job(raw: Raw) -> Content:
    """labels, conditions, suspend, parallelism, completions, active, ready, succeeded, failed, terminating,
    started_at, completed_at. Column run: our label.
    """
    labels = raw["metadata"].get("labels") or {}
    spec, status = raw.get("spec") or {}, raw.get("status") or {}
    record = {
        "labels": {key: value for key, value in labels.items() if key.startswith(_POD_LABELS)},
        "conditions": conditions(status),
        "suspend": spec.get("suspend", False),
        "parallelism": spec.get("parallelism", 1),
        "completions": spec.get("completions"),
        **{name: status.get(name, 0) for name in ("active", "ready", "succeeded", "failed", "terminating")},
        "started_at": status.get("startTime"),
        "completed_at": status.get("completionTime"),
    }
    return Content({"run": labels.get("gpu-portal/run", "")}, record)


def workload(raw: Raw) -> Content:
    """conditions, active, priority, priority_class, cluster_queue, flavors {resource: flavor}, usage {name: amount},
    pods (count assigned), checks {name: state}, requeue_count, requeue_at, evictions {reason: count}, preemptions.
    Columns: queue (LocalQueue), job_uid.
    """
    metadata, spec, status = raw["metadata"], raw.get("spec") or {}, raw.get("status") or {}
    admission = status.get("admission") or {}
    flavors: dict[str, str] = {}
    usage: dict[str, int] = {}
    for assignment in admission.get("podSetAssignments") or []:
        flavors |= assignment.get("flavors") or {}
        _add(usage, amounts(assignment.get("resourceUsage") or {}))
    evictions: dict[str, int] = {}
    for entry in (status.get("schedulingStats") or {}).get("evictions") or []:
        _add(evictions, {entry.get("reason", ""): entry.get("count", 0)})
    requeue = status.get("requeueState") or {}
    record = {
        "conditions": conditions(status, text_limit=KUEUE_TEXT_LIMIT),
        "active": spec.get("active", True),
        "priority": spec.get("priority", 0),
        "priority_class": (spec.get("priorityClassRef") or {}).get("name", ""),
        "cluster_queue": admission.get("clusterQueue", ""),
        "flavors": flavors,
        "usage": usage,
        "pods": sum(assignment.get("count", 0) for assignment in admission.get("podSetAssignments") or []),
        "checks": {check["name"]: check.get("state", "") for check in status.get("admissionChecks") or []},
        "requeue_count": requeue.get("count", 0),
        "requeue_at": requeue.get("requeueAt"),
        "evictions": evictions,
        "preemptions": evictions.get("Preempted", 0),
    }
    job_uid = controller_uid(metadata, "Job") or (metadata.get("labels") or {}).get("kueue.x-k8s.io/job-uid", "")
    return Content({"queue": spec.get("queueName", ""), "job_uid": job_uid}, record)


# ---- shared ------------------------------------------------------------------------------------------------------


def conditions(status: Raw, *, text_limit: int = TEXT_LIMIT) -> list[dict[str, Any]]:
    """[{type, status, reason, message, since}] in order of type: writers reorder them without meaning."""
    found = [
        {
            "type": condition["type"],
            "status": condition.get("status", "Unknown"),
            "reason": condition.get("reason", ""),
            "message": short(condition.get("message"), text_limit),
            "since": condition.get("lastTransitionTime"),
        }
        for condition in status.get("conditions") or []
    ]
    return sorted(found, key=lambda condition: condition["type"])


def controller_uid(metadata: Raw, kind: str) -> str:
    for reference in metadata.get("ownerReferences") or []:
        if reference.get("kind") == kind and reference.get("controller"):
            return str(reference["uid"])
    return ""


def amounts(quantities: Mapping[str, Any]) -> dict[str, int]:
    """Millicores of cpu, bytes of memory, whole pods and extended resources; the rest is left out."""
    return {name: amount(name, text) for name, text in quantities.items() if _counts(name)}


def amount(resource: str, quantity: Any) -> int:
    """A quantity in whole units of its resource (cpu: millicores), rounded up as Kubernetes does."""
    match = _QUANTITY.fullmatch(str(quantity))
    if match is None:
        raise ValueError(f"{resource}: {quantity!r} is no quantity")
    number, exponent, suffix = match.groups()
    value = Decimal(number) * (Decimal(10) ** int(exponent) if exponent else _SUFFIXES.get(suffix, Decimal(1)))
    return int((value * 1000 if resource == "cpu" else value).to_integral_value("ROUND_CEILING"))


def _counts(resource: str) -> bool:
    return resource in ("cpu", "memory", "pods") or "/" in resource


def short(text: Any, limit: int | None = TEXT_LIMIT) -> str:
    # PostgreSQL cannot hold NUL in a text.
    return str(text or "").replace("\x00", "")[:limit]
