"""Records of the kinds that the portal keeps as `MirrorObject` rows, and of Warning events. Pure, like `records.py`."""

from __future__ import annotations

from typing import Any

from cluster.records import Content, Raw, amount, conditions, short


def _content(**record: Any) -> Content:
    return Content({}, record)


# ---- a tenant's namespace ----------------------------------------------------------------------------------------


def namespace(raw: Raw) -> Content:
    """phase, labels, conditions (what blocks a deletion)."""
    status = raw.get("status") or {}
    labels = raw["metadata"].get("labels") or {}
    kept = {key: value for key, value in labels.items() if key != "kubernetes.io/metadata.name"}
    return _content(phase=status.get("phase", ""), labels=kept, conditions=conditions(status))


def resource_quota(raw: Raw) -> Content:
    """hard and used: {key: quantity as text}."""
    status = raw.get("status") or {}
    return _content(hard=(raw.get("spec") or {}).get("hard") or {}, used=status.get("used") or {})


def limit_range(raw: Raw) -> Content:
    """limits: as they are."""
    return _content(limits=(raw.get("spec") or {}).get("limits") or [])


def service_account(raw: Raw) -> Content:
    """automount: whether pods get a token."""
    return _content(automount=raw.get("automountServiceAccountToken", True))


def volume_claim(raw: Raw) -> Content:
    """phase, storage_class, asked_bytes, capacity_bytes, access_modes, volume, conditions."""
    spec, status = raw.get("spec") or {}, raw.get("status") or {}
    asked = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    capacity = (status.get("capacity") or {}).get("storage")
    return _content(
        phase=status.get("phase", ""),
        storage_class=spec.get("storageClassName") or "",
        asked_bytes=amount("storage", asked) if asked else 0,
        capacity_bytes=amount("storage", capacity) if capacity else 0,
        access_modes=spec.get("accessModes") or [],
        volume=spec.get("volumeName", ""),
        conditions=conditions(status),
    )


def network_policy(raw: Raw) -> Content:
    """types [Ingress, Egress], rules (how many of both)."""
    spec = raw.get("spec") or {}
    rules = len(spec.get("ingress") or []) + len(spec.get("egress") or [])
    return _content(types=spec.get("policyTypes") or [], rules=rules)


def role_binding(raw: Raw) -> Content:
    """role {kind, name}, subjects [{kind, name, namespace}]."""
    role = raw.get("roleRef") or {}
    subjects = [{key: one.get(key, "") for key in ("kind", "name", "namespace")} for one in raw.get("subjects") or []]
    return _content(role={"kind": role.get("kind", ""), "name": role.get("name", "")}, subjects=subjects)


# ---- queues ------------------------------------------------------------------------------------------------------


def cluster_queue(raw: Raw) -> Content:
    """cohort, stop_policy, quota {flavor: {resource: {nominal, borrowing, lending}}} (absent limit: null),
    usage and reserved {flavor: {resource: {total, borrowed}}}, pending, reserving, admitted, conditions.
    """
    spec, status = raw.get("spec") or {}, raw.get("status") or {}
    return _content(
        cohort=spec.get("cohortName") or spec.get("cohort") or "",
        stop_policy=spec.get("stopPolicy") or "None",
        quota=_quota(spec),
        usage=_usage(status.get("flavorsUsage")),
        reserved=_usage(status.get("flavorsReservation")),
        **_waiting(status),
    )


def local_queue(raw: Raw) -> Content:
    """cluster_queue, stop_policy, pending, reserving, admitted, conditions."""
    spec = raw.get("spec") or {}
    return _content(
        cluster_queue=spec.get("clusterQueue", ""),
        stop_policy=spec.get("stopPolicy") or "None",
        **_waiting(raw.get("status") or {}),
    )


def cohort(raw: Raw) -> Content:
    """parent, quota as in `cluster_queue`."""
    spec = raw.get("spec") or {}
    return _content(parent=spec.get("parentName") or spec.get("parent") or "", quota=_quota(spec))


def resource_flavor(raw: Raw) -> Content:
    """node_labels, taints, tolerations, topology."""
    spec = raw.get("spec") or {}
    return _content(
        node_labels=spec.get("nodeLabels") or {},
        taints=spec.get("nodeTaints") or [],
        tolerations=spec.get("tolerations") or [],
        topology=spec.get("topologyName") or "",
    )


def topology(raw: Raw) -> Content:
    """levels: node labels, outermost first."""
    return _content(levels=[level["nodeLabel"] for level in (raw.get("spec") or {}).get("levels") or []])


def _waiting(status: Raw) -> dict[str, Any]:
    return {
        "pending": status.get("pendingWorkloads", 0),
        "reserving": status.get("reservingWorkloads", 0),
        "admitted": status.get("admittedWorkloads", 0),
        "conditions": conditions(status),
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


# ---- dynamic resource allocation ---------------------------------------------------------------------------------


def resource_claim(raw: Raw) -> Content:
    """requests [{name, device_class, count}], devices [{request, driver, pool, device}] that it holds, used_by [pod
    names], state: pending, allocated or in use; pod_claim: the name by which the pod's template made it.
    """
    devices = ((raw.get("spec") or {}).get("devices") or {}).get("requests") or []
    status = raw.get("status") or {}
    allocation = status.get("allocation")
    results = ((allocation or {}).get("devices") or {}).get("results") or []
    # Who has admin access looks at devices that others may hold at the same time: a monitor.
    held = [result for result in results if not result.get("adminAccess")]
    used_by = [user["name"] for user in status.get("reservedFor") or [] if user.get("resource") == "pods"]
    return _content(
        requests=[
            {
                "name": request["name"],
                "device_class": (request.get("exactly") or {}).get("deviceClassName", ""),
                "count": (request.get("exactly") or {}).get("count", 1),
            }
            for request in devices
        ],
        devices=[{key: result.get(key, "") for key in ("request", "driver", "pool", "device")} for result in held],
        used_by=used_by,
        state="pending" if allocation is None else "in use" if used_by else "allocated",
        pod_claim=(raw["metadata"].get("annotations") or {}).get("resource.kubernetes.io/pod-claim-name", ""),
    )


def resource_slice(raw: Raw) -> Content:
    """driver, pool, generation, slices (how many the pool has), node, devices [{name, attributes {name: value},
    capacity {name: amount}, taints [{key, value, effect}]}].
    """
    spec = raw.get("spec") or {}
    pool = spec.get("pool") or {}
    return _content(
        driver=spec.get("driver", ""),
        pool=pool.get("name", ""),
        generation=pool.get("generation", 0),
        slices=pool.get("resourceSliceCount", 1),
        node=spec.get("nodeName") or "",
        devices=[
            {
                "name": device["name"],
                "attributes": {
                    name: next(iter(value.values()), None) for name, value in (device.get("attributes") or {}).items()
                },
                "capacity": {
                    name: amount(name, value.get("value", 0)) for name, value in (device.get("capacity") or {}).items()
                },
                "taints": [
                    {key: taint.get(key, "") for key in ("key", "value", "effect")}
                    for taint in device.get("taints") or []
                ],
            }
            for device in spec.get("devices") or []
        ],
    )


def device_class(raw: Raw) -> Content:
    """selectors: CEL expressions; extended_resource."""
    spec = raw.get("spec") or {}
    return _content(
        selectors=[(selector.get("cel") or {}).get("expression", "") for selector in spec.get("selectors") or []],
        extended_resource=spec.get("extendedResourceName") or "",
    )


# ---- Warning events ----------------------------------------------------------------------------------------------


def warning(raw: Raw) -> Content:
    """All in columns: object_kind, object_name, object_uid, reason, message, count, first_at, last_at, source.

    The old counters (count, firstTimestamp) and the new ones (series, eventTime) are both in use.
    """
    about = raw.get("involvedObject") or {}
    series = raw.get("series") or {}
    created_at = raw["metadata"].get("creationTimestamp")
    first_at = raw.get("firstTimestamp") or raw.get("eventTime") or created_at
    columns = {
        "object_kind": str(about.get("kind", ""))[:60],
        "object_name": short(about.get("name"), 253),
        "object_uid": str(about.get("uid", ""))[:36],
        "reason": short(raw.get("reason"), 120),
        "message": short(raw.get("message")),
        "count": series.get("count") or raw.get("count") or 1,
        "first_at": first_at,
        "last_at": series.get("lastObservedTime") or raw.get("lastTimestamp") or first_at,
        "source": ((raw.get("source") or {}).get("component") or raw.get("reportingComponent") or "")[:120],
    }
    return Content(columns, {}, is_kept=bool(raw.get("type", "Warning") == "Warning"))
