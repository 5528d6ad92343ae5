"""Records of pods. Pure."""

from __future__ import annotations

from typing import Any

from cluster.manifests.metadata import CLASS_LABEL, MANAGED_BY, OWNER_LABEL, RUN_LABEL
from cluster.mirror.records.quantities import add_amounts, amounts, larger_amounts
from cluster.mirror.records.types import (
    KEPT_LABELS,
    TEXT_LIMIT,
    Raw,
    RecordContent,
    condition_records,
    controller_uid,
    truncated,
    without_secrets,
)

# The label `app` of the pods of NVIDIA's GPU Operator, as its DaemonSets have it; the part is the name that the
# operator uses in the node label `nvidia.com/gpu.deploy.<part>`.
_STACK_APPS = {
    "nvidia-driver-daemonset": "driver",
    "nvidia-container-toolkit-daemonset": "container-toolkit",
    "nvidia-device-plugin-daemonset": "device-plugin",
    "gpu-feature-discovery": "gpu-feature-discovery",
    "nvidia-dcgm-exporter": "dcgm-exporter",
    "nvidia-mig-manager": "mig-manager",
    "nvidia-operator-validator": "operator-validator",
}


def pod_record(raw: Raw) -> RecordContent:
    """Of every pod: requests {resource: amount}, as the scheduler counts them. Ended pods outside our namespaces are
    not kept. Of a pod of others also: controller {kind, name}, if it has one. Of a pod of the GPU software stack also:
    stack, see `_stack`. Of a process of the portal also: portal {process, image, ready, created}.

    Of our pods also: labels, conditions, reason, message, containers and init_containers (see `_container`), ip,
    priority, gates [names], claims [names of ResourceClaims], job_uid, started_at.
    """
    metadata, spec, status = raw["metadata"], raw.get("spec") or {}, raw.get("status") or {}
    labels = metadata.get("labels") or {}
    phase = status.get("phase", "Pending")
    columns = {
        "node": spec.get("nodeName", ""),
        "phase": phase,
        "run": labels.get(RUN_LABEL, ""),
        "gpu_class": labels.get(CLASS_LABEL, ""),
    }
    record: dict[str, Any] = {"requests": pod_requests(spec)}
    if OWNER_LABEL not in labels:
        if (part := _stack_part(labels)) and controller_uid(metadata, "DaemonSet"):
            record["stack"] = _stack(part, status)
        if labels.get("app.kubernetes.io/name") == MANAGED_BY:
            record["portal"] = {
                "process": labels.get("app.kubernetes.io/component", ""),
                "image": spec["containers"][0]["image"],
                "ready": _is_ready(status),
                "created": metadata["creationTimestamp"],
            }
        if owner := next((one for one in metadata.get("ownerReferences") or [] if one.get("controller")), None):
            record["controller"] = {"kind": owner["kind"], "name": owner["name"]}
        return RecordContent(columns, record, is_kept=phase not in ("Succeeded", "Failed"))
    record |= {
        "labels": {key: value for key, value in labels.items() if key.startswith(KEPT_LABELS)},
        "conditions": condition_records(status),
        "reason": status.get("reason", ""),
        "message": truncated(without_secrets(status.get("message"))),
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
    return RecordContent(columns, record)


def _stack_part(labels: Raw) -> str:
    # Drivers of an NVIDIADriver have an `app` of their own each, and this label in common.
    if labels.get("app.kubernetes.io/component") == "nvidia-driver":
        return "driver"
    return _STACK_APPS.get(labels.get("app", ""), "")


def _stack(part: str, status: Raw) -> dict[str, Any]:
    """part; ready, since (of the condition Ready, None: not reported), restarts; of the first container that does not
    work: container, and reason if it is waiting.
    """
    ready = _ready_condition(status)
    first = [one for one in status.get("initContainerStatuses") or [] if not one.get("ready")]
    main = status.get("containerStatuses") or []
    stuck: Raw = next(iter([*first, *(one for one in main if not one.get("ready"))]), {})
    return {
        "part": part,
        "ready": _is_ready(status),
        "since": ready.get("lastTransitionTime"),
        "restarts": sum(one.get("restartCount", 0) for one in [*(status.get("initContainerStatuses") or []), *main]),
        "container": stuck.get("name", ""),
        "reason": ((stuck.get("state") or {}).get("waiting") or {}).get("reason", ""),
    }


def _ready_condition(status: Raw) -> Raw:
    return next((one for one in status.get("conditions") or [] if one["type"] == "Ready"), {})


def _is_ready(status: Raw) -> bool:
    return _ready_condition(status).get("status") == "True"


def _container(raw: Raw) -> dict[str, Any]:
    """name, ready, restarts, state (waiting, running, terminated or ""), reason, message, since, exit_code, ended_at;
    last_reason and last_exit_code of the previous attempt in the same pod.
    """
    state_name, state = _state(raw.get("state"))
    _, last = _state(raw.get("lastState"))
    is_about_image = state_name == "waiting" and "Image" in state.get("reason", "")
    message = state.get("message") if is_about_image else without_secrets(state.get("message"))
    return {
        "name": raw["name"],
        "ready": raw.get("ready", False),
        "restarts": raw.get("restartCount", 0),
        "state": state_name,
        "reason": state.get("reason", ""),
        # The important part of a termination message is at its end.
        "message": truncated(message, None if state_name == "terminated" else TEXT_LIMIT)[-TEXT_LIMIT:],
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
    """Returns the larger of two sums: the containers that run together, and each init container with the sidecars
    started before it.
    """
    together: dict[str, int] = {}
    for container in spec.get("containers") or []:
        add_amounts(together, _requests(container))
    sidecars: dict[str, int] = {}
    starting: dict[str, int] = {}
    for container in spec.get("initContainers") or []:
        needs = _requests(container)
        if container.get("restartPolicy") == "Always":
            add_amounts(sidecars, needs)
            needs = dict(sidecars)
        else:
            add_amounts(needs, sidecars)
        starting = larger_amounts(starting, needs)
    add_amounts(together, sidecars)
    total = larger_amounts(together, starting) | _requests(spec)
    add_amounts(total, amounts(spec.get("overhead") or {}))
    return total


def _requests(container: Raw) -> dict[str, int]:
    resources = container.get("resources") or {}
    return amounts((resources.get("limits") or {}) | (resources.get("requests") or {}))
