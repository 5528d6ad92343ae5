"""What the operators' start page shows, composed of the queries of the pages that it links to."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from accounts.events.queries import undelivered_mails
from catalog.classes import queries as catalog
from catalog.models import GpuClass
from cluster.models import Cluster
from desk.capacity.totals import ClassFigures, WeightedTotal, class_figures, weighted_totals
from desk.health.report import HealthSnapshot, take_snapshot
from desk.queue import queries as queue_queries
from desk.queue.queries import QueueFilter, ReasonCounts
from desk.teams.queries import team_counts
from tenants.models import TeamRequest
from tenants.onboarding.team_requests import queries as team_request_queries
from tenants.requests import queries as request_queries
from tenants.requests.queries import PendingRequest
from usage.idle.queries import IdleHolders, idle_holders

IDLE_SHOWN = 3
# How a class gives GPUs to workloads, in the order of the page.
SHARING_MODES = {
    "whole": "Whole GPU",
    "slice": "MIG and other slices",
    "time-slicing": "Time-sliced",
    "mps": "MPS",
    "dra": "DRA",
}


@dataclass(frozen=True)
class SharingMode:
    """GPU equivalents of all open classes of one mode. Figures of `total` are None where a class is unknown."""

    label: str
    classes: tuple[str, ...]
    total: WeightedTotal
    is_shared: bool


@dataclass(frozen=True)
class WaitingRuns:
    runs: int
    oldest_at: datetime | None
    reasons: ReasonCounts
    # Names of the classes whose scheduling is paused.
    paused: tuple[str, ...]


@dataclass(frozen=True)
class Cockpit:
    modes: tuple[SharingMode, ...]
    waiting: WaitingRuns
    snapshot: HealthSnapshot
    teams: dict[str, int]
    requests: list[PendingRequest]
    team_requests: list[TeamRequest]
    # Mails whose last attempt failed; they are among the failing tasks.
    undelivered: int
    idle: IdleHolders

    @property
    def pending(self) -> int:
        """Requests for quota and for new teams."""
        return len(self.requests) + len(self.team_requests)

    @property
    def overdue(self) -> int:
        return sum(one.is_overdue for one in self.requests)


def cockpit(cluster: Cluster, *, is_staff: bool) -> Cockpit:
    """`is_staff`: as catalog_checks. The number of queries does not depend on the number of teams and nodes; runs add
    some for each chunk of the queue that reason_counts reads.
    """
    return Cockpit(
        modes=_modes(cluster),
        waiting=_waiting(cluster),
        snapshot=take_snapshot(cluster, is_staff=is_staff),
        teams=team_counts(cluster),
        requests=request_queries.pending_requests(),
        team_requests=list(team_request_queries.pending_team_requests()),
        undelivered=undelivered_mails().count(),
        idle=idle_holders(at_most=IDLE_SHOWN),
    )


def _modes(cluster: Cluster) -> tuple[SharingMode, ...]:
    by_mode: dict[str, list[GpuClass]] = {name: [] for name in SHARING_MODES}
    for one in catalog.open_classes(cluster):
        if (mode := _mode(one)) is not None:
            by_mode[mode].append(one)
    figures = class_figures(cluster, [one for classes in by_mode.values() for one in classes])
    return tuple(
        SharingMode(
            label=SHARING_MODES[name],
            classes=tuple(one.name for one in classes),
            total=_total([figures[one.pk] for one in classes]),
            is_shared=any(figures[one.pk].is_shared for one in classes),
        )
        for name, classes in by_mode.items()
        if classes
    )


def _mode(one: GpuClass) -> str | None:
    """None: its units are no GPUs."""
    if one.interface == GpuClass.Interface.DRA:
        return "dra"
    if one.interface != GpuClass.Interface.DEVICE_PLUGIN:
        return None
    if one.sharing != GpuClass.Sharing.NONE:
        return one.sharing
    return "slice" if one.partition != "none" else "whole"


def _total(figures: Collection[ClassFigures]) -> WeightedTotal:
    """Of one mode, so either all classes are shared or none."""
    found = weighted_totals(figures)
    return found.shared if any(one.is_shared for one in figures) else found.exclusive


def _waiting(cluster: Cluster) -> WaitingRuns:
    lines = queue_queries.class_queues(cluster)
    return WaitingRuns(
        runs=sum(one.runs for one in lines),
        oldest_at=min((one.oldest_at for one in lines if one.oldest_at), default=None),
        reasons=queue_queries.reason_counts(cluster, QueueFilter()),
        paused=tuple(one.name for one in lines if one.is_held),
    )
