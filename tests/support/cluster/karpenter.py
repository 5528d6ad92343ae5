"""A NodePool, a NodeClaim and events as Karpenter 1.14 writes them, for tests without Karpenter."""

from __future__ import annotations

from typing import Any

Raw = dict[str, Any]

GPU = "nvidia.com/gpu"
# Of the pod that asks for 4 GPUs where 2 of the limit are left.
TOO_FEW = (
    "Failed to schedule pod, no instance type has enough resources, requirements=karpenter.kwok.sh/kwoknodeclass In "
    "[simulated], karpenter.sh/capacity-type In [on-demand], karpenter.sh/nodepool In [gpus], test.example/own In [x], "
    'resources={"cpu":"1","memory":"1Gi","nvidia.com/gpu":"4","pods":"1"}'
)


def condition(kind: str, status: str = "True", *, reason: str = "", message: str = "") -> Raw:
    return {
        "type": kind,
        "status": status,
        "reason": reason or kind,
        "message": message,
        "lastTransitionTime": "2026-11-21T11:58:00Z",
    }


def node_pool(
    name: str = "gpus",
    *conditions: Raw,
    limits: Raw | None = None,
    resources: Raw | None = None,
    labels: Raw | None = None,
    requirements: list[Raw] | None = None,
) -> Raw:
    """`resources`: {} for a pool that is counted and has no nodes."""
    spec = {
        "expireAfter": "Never",
        "requirements": requirements or [],
        "taints": [{"key": GPU, "value": "present", "effect": "NoSchedule"}],
    }
    return {
        "metadata": {"name": name},
        "spec": {"limits": limits or {}, "template": {"metadata": {"labels": labels or {}}, "spec": spec}},
        "status": {
            "conditions": [*(conditions or (condition("Ready"),))],
            **({} if resources is None else {"resources": {"nodes": "0", **resources}}),
        },
    }


def node_claim(
    name: str = "gpus-k7hxh", *conditions: Raw, pool: str = "gpus", units: int = 4, labels: Raw | None = None
) -> Raw:
    created = {"creationTimestamp": "2026-11-21T11:58:00Z"}
    return {
        "metadata": {"name": name, "labels": {"karpenter.sh/nodepool": pool, **(labels or {})}, **created},
        "spec": {
            "requirements": [],
            "resources": {"requests": {"cpu": "1", "memory": "1Gi", GPU: str(units), "pods": "1"}},
            "taints": [{"key": GPU, "value": "present", "effect": "NoSchedule"}],
        },
        "status": {"conditions": [*conditions]},
    }
