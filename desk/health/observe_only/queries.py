"""What an operator looks at before the portal writes: the state, what waits, and who else uses devices."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime

from cluster.models import Cluster, MirrorPod
from cluster.observe_only.queries import WaitingWork, waiting_work
from cluster.reads import queries as mirror


@dataclass(frozen=True)
class ForeignNamespace:
    """A namespace in which pods that the portal did not create request devices. `devices`: resource and amount."""

    name: str
    pods: int
    devices: list[tuple[str, int]]


@dataclass(frozen=True)
class ObserveOnly:
    """`namespaces`: None while the mirror does not know all pods. `as_of`: of the mirror."""

    since: datetime | None
    by: str
    waiting: WaitingWork
    namespaces: list[ForeignNamespace] | None
    as_of: datetime | None
    is_stale: bool


def observe_only_of(cluster: Cluster) -> ObserveOnly:
    as_of = mirror.as_of(cluster.pk, "Pod")
    decider = cluster.observe_only_by
    return ObserveOnly(
        since=cluster.observe_only_since,
        by=decider.name if decider else "",
        waiting=waiting_work(),
        namespaces=_foreign_namespaces(cluster) if as_of.is_current else None,
        as_of=as_of.at,
        is_stale=not as_of.is_current,
    )


def _foreign_namespaces(cluster: Cluster) -> list[ForeignNamespace]:
    """One query. Extended resources have a domain; those of the node itself have none."""
    pods: Counter[str] = Counter()
    devices: dict[str, Counter[str]] = {}
    rows = MirrorPod.objects.filter(cluster_id=cluster.pk, owner="").exclude(phase__in=("Succeeded", "Failed"))
    for namespace, requests in rows.values_list("namespace", "record__requests"):
        held = {resource: amount for resource, amount in (requests or {}).items() if "/" in resource and amount}
        if held:
            pods[namespace] += 1
            devices.setdefault(namespace, Counter()).update(held)
    return [ForeignNamespace(name, pods[name], sorted(devices[name].items())) for name in sorted(pods)]
