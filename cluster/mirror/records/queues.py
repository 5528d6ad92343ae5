"""Records of Kueue's queues, cohorts, flavors and topologies. Pure."""

from __future__ import annotations

from typing import Any

from cluster.mirror.records.quantities import amount
from cluster.mirror.records.types import Raw, RecordContent, condition_records, record_only


def cluster_queue_record(raw: Raw) -> RecordContent:
    """cohort, stop_policy, quota {flavor: {resource: {nominal, borrowing, lending}}} (absent limit: null),
    usage and reserved {flavor: {resource: {total, borrowed}}}, pending, reserving, admitted, conditions.
    """
    spec, status = raw.get("spec") or {}, raw.get("status") or {}
    return record_only(
        cohort=spec.get("cohortName") or spec.get("cohort") or "",
        stop_policy=spec.get("stopPolicy") or "None",
        quota=_quota(spec),
        usage=_usage(status.get("flavorsUsage")),
        reserved=_usage(status.get("flavorsReservation")),
        **_waiting(status),
    )


def local_queue_record(raw: Raw) -> RecordContent:
    """cluster_queue, stop_policy, pending, reserving, admitted, conditions."""
    spec = raw.get("spec") or {}
    return record_only(
        cluster_queue=spec.get("clusterQueue", ""),
        stop_policy=spec.get("stopPolicy") or "None",
        **_waiting(raw.get("status") or {}),
    )


def cohort_record(raw: Raw) -> RecordContent:
    """parent, quota as in `cluster_queue`."""
    spec = raw.get("spec") or {}
    return record_only(parent=spec.get("parentName") or spec.get("parent") or "", quota=_quota(spec))


def resource_flavor_record(raw: Raw) -> RecordContent:
    """node_labels, taints, tolerations, topology."""
    spec = raw.get("spec") or {}
    return record_only(
        node_labels=spec.get("nodeLabels") or {},
        taints=spec.get("nodeTaints") or [],
        tolerations=spec.get("tolerations") or [],
        topology=spec.get("topologyName") or "",
    )


def topology_record(raw: Raw) -> RecordContent:
    """levels: node labels, outermost first."""
    return record_only(levels=[level["nodeLabel"] for level in (raw.get("spec") or {}).get("levels") or []])


def _waiting(status: Raw) -> dict[str, Any]:
    return {
        "pending": status.get("pendingWorkloads", 0),
        "reserving": status.get("reservingWorkloads", 0),
        "admitted": status.get("admittedWorkloads", 0),
        "conditions": condition_records(status),
    }


def _quota(spec: Raw) -> dict[str, dict[str, dict[str, int | None]]]:
    found: dict[str, dict[str, dict[str, int | None]]] = {}
    for group in spec.get("resourceGroups") or []:
        for flavor in group.get("flavors") or []:
            for entry in flavor.get("resources") or []:
                name = entry["name"]
                found.setdefault(flavor["name"], {})[name] = {
                    "nominal": amount(name, entry.get("nominalQuota", 0)),
                    "borrowing": _optional(name, entry.get("borrowingLimit")),
                    "lending": _optional(name, entry.get("lendingLimit")),
                }
    return found


def _usage(flavors: list[Raw] | None) -> dict[str, dict[str, dict[str, int]]]:
    return {
        flavor["name"]: {
            entry["name"]: {
                "total": amount(entry["name"], entry.get("total", 0)),
                "borrowed": amount(entry["name"], entry.get("borrowed", 0)),
            }
            for entry in flavor.get("resources") or []
        }
        for flavor in flavors or []
    }


def _optional(resource: str, quantity: Any) -> int | None:
    return None if quantity is None else amount(resource, quantity)
