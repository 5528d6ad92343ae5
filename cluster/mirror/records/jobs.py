"""Records of Jobs and of Kueue's Workloads. Pure."""

from __future__ import annotations

from cluster.client.managed_fields import writer_of
from cluster.manifests.metadata import RUN_LABEL
from cluster.mirror.records.quantities import add_amounts, amounts
from cluster.mirror.records.types import KEPT_LABELS, Raw, RecordContent, condition_records, controller_uid

# Kueue lists every flavor in one sentence, which explanations parse; other messages are only shown to users.
KUEUE_TEXT_LIMIT = 4096


def job_record(raw: Raw) -> RecordContent:
    """labels, conditions, suspend, parallelism, completions, active, ready, succeeded, failed, terminating,
    started_at, completed_at. Column run: our label.
    """
    labels = raw["metadata"].get("labels") or {}
    spec, status = raw.get("spec") or {}, raw.get("status") or {}
    record = {
        "labels": {key: value for key, value in labels.items() if key.startswith(KEPT_LABELS)},
        "conditions": condition_records(status),
        "suspend": spec.get("suspend", False),
        "parallelism": spec.get("parallelism", 1),
        "completions": spec.get("completions"),
        **{name: status.get(name, 0) for name in ("active", "ready", "succeeded", "failed", "terminating")},
        "started_at": status.get("startTime"),
        "completed_at": status.get("completionTime"),
    }
    return RecordContent({"run": labels.get(RUN_LABEL, "")}, record)


def workload_record(raw: Raw) -> RecordContent:
    """conditions, active, priority, priority_class, cluster_queue, flavors {resource: flavor}, usage {name: amount},
    pods (count assigned), checks {name: state}, requeue_count, requeue_at, evictions {reason: count}, preemptions;
    inactive_by and inactive_since: who set it to inactive, "" while it is active.
    Columns: queue (LocalQueue), job_uid.
    """
    metadata, spec, status = raw["metadata"], raw.get("spec") or {}, raw.get("status") or {}
    admission = status.get("admission") or {}
    flavors: dict[str, str] = {}
    usage: dict[str, int] = {}
    for assignment in admission.get("podSetAssignments") or []:
        flavors |= assignment.get("flavors") or {}
        add_amounts(usage, amounts(assignment.get("resourceUsage") or {}))
    evictions: dict[str, int] = {}
    for entry in (status.get("schedulingStats") or {}).get("evictions") or []:
        add_amounts(evictions, {entry.get("reason", ""): entry.get("count", 0)})
    requeue = status.get("requeueState") or {}
    record = {
        "conditions": condition_records(status, text_limit=KUEUE_TEXT_LIMIT),
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
        "inactive_by": "",
        "inactive_since": None,
    }
    if not record["active"] and (entry := writer_of("spec.active", metadata.get("managedFields") or [])):
        record |= {"inactive_by": str(entry.get("manager", ""))[:128], "inactive_since": entry.get("time")}
    job_uid = controller_uid(metadata, "Job") or (metadata.get("labels") or {}).get("kueue.x-k8s.io/job-uid", "")
    return RecordContent({"queue": spec.get("queueName", ""), "job_uid": job_uid}, record)
