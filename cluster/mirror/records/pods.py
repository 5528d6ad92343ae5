"""Records of pods. Pure."""

from __future__ import annotations

from typing import Any

from cluster.manifests.metadata import CLASS_LABEL, OWNER_LABEL, RUN_LABEL
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


def pod_record(raw: Raw) -> RecordContent:
    """Of every pod: requests {resource: amount}, as the scheduler counts them. Ended pods outside our namespaces are
    not kept.

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
