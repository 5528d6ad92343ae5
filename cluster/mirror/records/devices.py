"""Records of dynamic resource allocation: claims, slices and device classes. Pure."""

from __future__ import annotations

from cluster.mirror.records.quantities import amount
from cluster.mirror.records.types import Raw, RecordContent, record_only


def resource_claim_record(raw: Raw) -> RecordContent:
    """requests [{name, device_class, count}], devices [{request, driver, pool, device}] that it holds, used_by [pod
    names], state: pending, allocated or in use; pod_claim: the name by which the pod's template made it.
    """
    devices = ((raw.get("spec") or {}).get("devices") or {}).get("requests") or []
    status = raw.get("status") or {}
    allocation = status.get("allocation")
    results = ((allocation or {}).get("devices") or {}).get("results") or []
    # A request with admin access reads devices that other claims may hold at the same time: a monitor.
    held = [result for result in results if not result.get("adminAccess")]
    used_by = [user["name"] for user in status.get("reservedFor") or [] if user.get("resource") == "pods"]
    return record_only(
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


def resource_slice_record(raw: Raw) -> RecordContent:
    """driver, pool, generation, slices (how many the pool has), node, devices [{name, attributes {name: value},
    capacity {name: amount}, taints [{key, value, effect}], is_divided: it takes parts of what other devices take too,
    or several claims may hold it}].
    """
    spec = raw.get("spec") or {}
    pool = spec.get("pool") or {}
    return record_only(
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
                "is_divided": bool(device.get("consumesCounters") or device.get("allowMultipleAllocations")),
            }
            for device in spec.get("devices") or []
        ],
    )


def device_class_record(raw: Raw) -> RecordContent:
    """selectors: CEL expressions; extended_resource."""
    spec = raw.get("spec") or {}
    return record_only(
        selectors=[(selector.get("cel") or {}).get("expression", "") for selector in spec.get("selectors") or []],
        extended_resource=spec.get("extendedResourceName") or "",
    )
