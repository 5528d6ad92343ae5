"""Why Karpenter adds no node for a pod, or that it has ordered one. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta

from cluster.reads.autoscaler.pools import Autoscaler, NodeClaim, NodePool, Shortfall
from cluster.reads.observed import WarningEvent
from portal.ui.text import date_and_time, plural
from workloads.status.explain.quantities import GIB, sized
from workloads.status.explain.types import STOP_OR_CHANGE, Explanation

# Karpenter reports the same about a pod at most once in 5 minutes.
REFUSAL_LIFE = timedelta(minutes=6)
_REFUSED = "Failed to schedule pod, "
# What follows are lists of requirements and sizes.
_LISTS = re.compile(r"[,;(]? ?(?:requirements|daemonset overhead|resources|NodePool)=|; ")
_WORDS_LIMIT = 200


def refusal_of(warnings: Iterable[WarningEvent], now: datetime) -> WarningEvent | None:
    """Returns Karpenter's latest event that it adds no node for the pod. The scheduler's events have the same reason
    and other words.
    """
    found = (one for one in warnings if one.reason == "FailedScheduling" and one.message.startswith(_REFUSED))
    latest = max(found, key=lambda one: one.last_at, default=None)
    return latest if latest is not None and now - latest.last_at <= REFUSAL_LIFE else None


def by_autoscaler(seen: Autoscaler | None, told: Explanation, refusal: WarningEvent | None) -> Explanation | None:
    """`told`: that a node is added on demand; `refusal`: of the pod. Returns None if nothing more is known."""
    if seen is None or not seen.pools:
        return None
    # An order that is older than Karpenter's refusal is for other pods.
    if seen.coming is not None and (refusal is None or refusal.last_at < seen.coming.created_at):
        return _starting(seen.coming, told)
    shut = [pool for pool in seen.pools if pool.unready is None and pool.name in seen.shortfalls]
    unready = [pool for pool in seen.pools if pool.unready is not None]
    if len(shut) + len(unready) == len(seen.pools):
        return _at_limit(shut, seen, told) if shut else _unready(unready, told)
    return _refused(refusal, told) if refusal is not None else None


def _starting(claim: NodeClaim, told: Explanation) -> Explanation:
    return replace(
        told,
        reason="node_starting",
        sentence=f"No node has this now. A node that suits it is being started by NodePool {claim.pool}, since "
        f"{date_and_time(claim.created_at)}.",
        remedy="It starts when the node is ready and has room for it. Contact an operator if this takes much longer.",
        facts={"node_pool": claim.pool},
    )


def _at_limit(shut: list[NodePool], seen: Autoscaler, told: Explanation) -> Explanation:
    first, others = shut[0], len(shut) - 1
    lack = seen.shortfalls[first.name]
    more = (
        f" {plural(others, 'other NodePool')} that would suit it {'is' if others == 1 else 'are'} too."
        if others
        else ""
    )
    return replace(
        told,
        reason="autoscaler_limit",
        sentence=f"The autoscaler may not add more nodes: NodePool {first.name} {_limit(lack)}.{more}",
        remedy="It starts when a workload on these nodes ends, or when an operator raises the limit.",
        actions=STOP_OR_CHANGE,
        facts={
            "node_pool": first.name,
            "resource": lack.resource,
            "limit": _figure(lack.resource, lack.limit),
            "used": _figure(lack.resource, lack.used),
            "asked": _figure(lack.resource, lack.needed),
        },
    )


def _limit(lack: Shortfall) -> str:
    limit = _named(lack.resource, lack.limit)
    if lack.used >= lack.limit:
        return f"is at its limit of {limit}"
    left, needed = (_named(lack.resource, n) for n in (lack.limit - lack.used, lack.needed))
    return f"is near its limit of {limit}: {left} are left, and a node for this needs {needed}"


def _unready(pools: list[NodePool], told: Explanation) -> Explanation:
    first = pools[0]
    why = first.unready.message or first.unready.reason if first.unready is not None else ""
    return replace(
        told,
        reason="autoscaler_not_ready",
        sentence=f"The autoscaler adds no node: NodePool {first.name} is not ready{f' ({why})' if why else ''}.",
        remedy="It starts when an operator has repaired the NodePool, or when a workload on these nodes ends.",
        facts={"node_pool": first.name},
    )


def _refused(refusal: WarningEvent, told: Explanation) -> Explanation:
    words = _LISTS.split(refusal.message.removeprefix(_REFUSED), maxsplit=1)[0].strip().rstrip(".,")[:_WORDS_LIMIT]
    return replace(
        told,
        reason="autoscaler_refused",
        sentence=f"The autoscaler adds no node for this: {words}.",
        remedy="Contact an operator: the NodePools have to offer nodes for this class.",
        raw=refusal.message,
        raw_from="Karpenter",
        facts={},
    )


def _figure(resource: str, amount: int) -> int | float:
    """cpu is in millicores and memory in bytes, as in the mirror."""
    value = amount / 1000 if resource == "cpu" else amount / GIB if resource == "memory" else amount
    return int(value) if float(value).is_integer() else round(value, 1)


def _named(resource: str, amount: int) -> str:
    if resource == "cpu":
        return sized("cpu", f"{amount}m")
    if resource == "memory":
        return sized("memory", amount)
    return plural(amount, "node") if resource == "nodes" else f"{amount} {resource}"
