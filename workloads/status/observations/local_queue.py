"""The team's queue as the mirror shows it, and the namespace's limits if they keep a workload waiting."""

from __future__ import annotations

from collections.abc import Iterable

from cluster.reads import queries as mirror
from cluster.reads.observed import GenericObject, KueueWorkload
from workloads.core.observation import LocalQueueState
from workloads.status.explain.quantities import is_more


def local_queue_state(
    cluster_id: int, namespace: str, in_kueue: Iterable[KueueWorkload], found: GenericObject | None
) -> LocalQueueState | None:
    """`found`: the ClusterQueue. Returns None if the mirror has none, or if nothing waits in it. One query if limits
    delay a workload.
    """
    pending = [one.condition("QuotaReserved") for one in in_kueue if not one.is_true("QuotaReserved")]
    if found is None or not pending:
        return None
    nominal: dict[str, int] = {}
    for flavor, cells in found.record["quota"].items():
        slug = flavor.rpartition("-")[0]
        nominal[slug] = nominal.get(slug, 0) + sum(cell["nominal"] for cell in cells.values())
    active = found.condition("Active")
    why = active.message if active is not None and not active.is_true else ""
    is_limited = any(one is not None and "LimitRange constraints" in one.message for one in pending)
    limits, minimums = _limits(cluster_id, namespace) if is_limited else ({}, {})
    return LocalQueueState(nominal, why, found.record["stop_policy"] != "None", limits, minimums)


def _limits(cluster_id: int, namespace: str) -> tuple[dict[str, str], dict[str, str]]:
    """Returns the smallest maximum and the largest minimum by resource."""
    most: dict[str, str] = {}
    least: dict[str, str] = {}
    for one in mirror.objects(cluster_id, kind="LimitRange", namespace=namespace):
        for limit in one.record["limits"]:
            if limit.get("type") != "Container":
                continue
            for name, bound in (limit.get("max") or {}).items():
                if name not in most or is_more(name, most[name], bound):
                    most[name] = bound
            for name, bound in (limit.get("min") or {}).items():
                if name not in least or is_more(name, bound, least[name]):
                    least[name] = bound
    return most, least
