"""What an operator looks at before the portal writes: the state, what waits, and who else uses devices."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from cluster.models import Cluster
from cluster.observe_only.queries import WaitingWork, waiting_work
from cluster.reads import queries as mirror
from desk.adoption.queries import ForeignNamespace, foreign_namespaces


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
        namespaces=foreign_namespaces(cluster) if as_of.is_current else None,
        as_of=as_of.at,
        is_stale=not as_of.is_current,
    )
