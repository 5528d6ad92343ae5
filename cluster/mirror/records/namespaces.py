"""Records of a namespace and of the objects in it, of the volumes of its claims, and of Warning events. Pure."""

from __future__ import annotations

from cluster.mirror.records.quantities import amount
from cluster.mirror.records.types import Raw, RecordContent, condition_records, record_only, truncated, without_secrets

# ---- objects of a team's namespace -------------------------------------------------------------------------------


def namespace_record(raw: Raw) -> RecordContent:
    """phase, labels, conditions (what blocks a deletion)."""
    status = raw.get("status") or {}
    labels = raw["metadata"].get("labels") or {}
    kept = {key: value for key, value in labels.items() if key != "kubernetes.io/metadata.name"}
    return record_only(phase=status.get("phase", ""), labels=kept, conditions=condition_records(status))


def resource_quota_record(raw: Raw) -> RecordContent:
    """hard and used: {key: quantity as text}."""
    status = raw.get("status") or {}
    return record_only(hard=(raw.get("spec") or {}).get("hard") or {}, used=status.get("used") or {})


def limit_range_record(raw: Raw) -> RecordContent:
    """limits: as they are."""
    return record_only(limits=(raw.get("spec") or {}).get("limits") or [])


def service_account_record(raw: Raw) -> RecordContent:
    """automount: whether pods get a token."""
    return record_only(automount=raw.get("automountServiceAccountToken", True))


def volume_claim_record(raw: Raw) -> RecordContent:
    """phase, storage_class, asked_bytes, capacity_bytes, access_modes, volume, conditions, and the node that it was
    created for.
    """
    spec, status = raw.get("spec") or {}, raw.get("status") or {}
    asked = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    capacity = (status.get("capacity") or {}).get("storage")
    return record_only(
        phase=status.get("phase", ""),
        storage_class=spec.get("storageClassName") or "",
        asked_bytes=amount("storage", asked) if asked else 0,
        capacity_bytes=amount("storage", capacity) if capacity else 0,
        access_modes=spec.get("accessModes") or [],
        volume=spec.get("volumeName", ""),
        node=(raw["metadata"].get("annotations") or {}).get("volume.kubernetes.io/selected-node", ""),
        conditions=condition_records(status),
    )


def volume_record(raw: Raw) -> RecordContent:
    """nodes: the nodeSelectorTerms of the nodes that can mount it, [] for all. Kept if it belongs to a claim."""
    spec = raw.get("spec") or {}
    required = (spec.get("nodeAffinity") or {}).get("required") or {}
    terms = [term for term in required.get("nodeSelectorTerms") or [] if term]
    return RecordContent({}, {"nodes": terms}, is_kept=spec.get("claimRef") is not None)


def storage_class_record(raw: Raw) -> RecordContent:
    """Nothing: that it exists is what is asked."""
    return record_only()


def network_policy_record(raw: Raw) -> RecordContent:
    """types [Ingress, Egress], rules (how many of both)."""
    spec = raw.get("spec") or {}
    rules = len(spec.get("ingress") or []) + len(spec.get("egress") or [])
    return record_only(types=spec.get("policyTypes") or [], rules=rules)


def role_binding_record(raw: Raw) -> RecordContent:
    """role {kind, name}, subjects [{kind, name, namespace}]."""
    role = raw.get("roleRef") or {}
    subjects = [{key: one.get(key, "") for key in ("kind", "name", "namespace")} for one in raw.get("subjects") or []]
    return record_only(role={"kind": role.get("kind", ""), "name": role.get("name", "")}, subjects=subjects)


# ---- Warning events ----------------------------------------------------------------------------------------------


# Events of the kubelet that quote what a program printed, or its command.
QUOTING = ("Unhealthy", "FailedPostStartHook", "FailedPreStopHook", "Failed", "BackOff")


def warning_record(raw: Raw) -> RecordContent:
    """All in columns: object_kind, object_name, object_uid, reason, message, count, first_at, last_at, source.

    Of those about nodes, which have no namespace of ours, only errors of GPUs are kept.

    The old counters (count, firstTimestamp) and the new ones (series, eventTime) are both in use.
    """
    about = raw.get("involvedObject") or {}
    is_of_node = about.get("kind") == "Node"
    series = raw.get("series") or {}
    created_at = raw["metadata"].get("creationTimestamp")
    reason, message = truncated(raw.get("reason"), 120), raw.get("message")
    first_at = raw.get("firstTimestamp") or raw.get("eventTime") or created_at
    columns = {
        "object_kind": str(about.get("kind", ""))[:60],
        "object_name": truncated(about.get("name"), 253),
        "object_uid": str(about.get("uid", ""))[:36],
        "reason": reason,
        "message": truncated(without_secrets(message) if reason in QUOTING else message),
        "count": series.get("count") or raw.get("count") or 1,
        "first_at": first_at,
        "last_at": series.get("lastObservedTime") or raw.get("lastTimestamp") or first_at,
        "source": ((raw.get("source") or {}).get("component") or raw.get("reportingComponent") or "")[:120],
    }
    is_kept = raw.get("type", "Warning") == "Warning" and (not is_of_node or "xid" in f"{reason} {message}".lower())
    return RecordContent(columns, {}, is_kept=is_kept, is_everywhere=is_of_node)
