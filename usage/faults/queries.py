"""Faults of GPUs for pages and the API: those of a run, of nodes, and all that a user may see."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from django.db.models import Exists, OuterRef, Prefetch, Q, QuerySet
from django.utils import timezone

from accounts.core.actor import Actor
from cluster.models import Cluster
from tenants.members.models import in_teams_of
from tenants.models import Tenant
from usage.faults.models import FaultRun, FaultSource, GpuFault
from usage.faults.policy import FaultMeaning, meaning_of, title_of
from usage.faults.types import FaultKind
from workloads.models import Run

# A fault whose GPU has had no metrics for longer: nobody knows whether it is still there.
MEASURED_WITHIN = timedelta(minutes=5)
OF_RUN_SHOWN = 20
OF_NODE_SHOWN = 50
# Of faults that are over, on the page of a node.
CLEARED_SHOWN = timedelta(days=7)


class FaultState(StrEnum):
    OPEN = "open"
    UNKNOWN = "unknown"
    CLEARED = "cleared"
    GONE = "gone"


@dataclass(frozen=True)
class Fault:
    """`runs`: those that the caller may see, with their workloads and teams."""

    row: GpuFault
    state: FaultState
    runs: tuple[Run, ...] = ()

    @property
    def kind(self) -> FaultKind:
        return FaultKind(self.row.kind)

    @property
    def code(self) -> int | None:
        return self.row.code if self.kind is FaultKind.XID else None

    @property
    def meaning(self) -> FaultMeaning:
        return meaning_of(self.kind, self.row.code)

    @property
    def title(self) -> str:
        return title_of(self.kind, self.row.code)

    @property
    def is_open(self) -> bool:
        return self.row.cleared_at is None

    @property
    def is_unhealthy(self) -> bool:
        """Whether its GPU counts as unhealthy: open, and so bad that a cordon is proposed."""
        return self.is_open and self.meaning.cordons


def fault_of(row: GpuFault, at: datetime, runs: Collection[Run] = ()) -> Fault:
    return Fault(row, _state(row, at), tuple(runs))


def _state(row: GpuFault, at: datetime) -> FaultState:
    if row.cleared_at is not None:
        return FaultState.GONE if row.is_gone else FaultState.CLEARED
    return FaultState.OPEN if at - row.measured_at <= MEASURED_WITHIN else FaultState.UNKNOWN


def faults_of_run(run: Run | None) -> list[Fault]:
    """Open or over, the newest first. One query."""
    if run is None:
        return []
    now = timezone.now()
    rows = GpuFault.objects.filter(concerned__run=run).order_by("-first_seen", "-id")[:OF_RUN_SHOWN]
    return [fault_of(row, now) for row in rows]


def visible_faults(by: Actor) -> QuerySet[GpuFault]:
    """Staff see all, others those of runs of their teams. `concerned` are only the runs that the caller may see."""
    if by.user is None or by.sees_all:
        return _with_concerned(FaultRun.objects.all())
    theirs = FaultRun.objects.filter(in_teams_of(by, "run__workload__tenant__"))
    return _with_concerned(theirs).filter(Exists(theirs.filter(fault=OuterRef("pk"))))


def _with_concerned(shown: QuerySet[FaultRun]) -> QuerySet[GpuFault]:
    runs = shown.select_related("run__workload__tenant").order_by("run_id")
    return GpuFault.objects.prefetch_related(Prefetch("concerned", runs))


def of_team(rows: QuerySet[GpuFault], team: Tenant) -> QuerySet[GpuFault]:
    return rows.filter(Exists(FaultRun.objects.filter(fault=OuterRef("pk"), run__workload__tenant=team)))


def with_runs(row: GpuFault, at: datetime) -> Fault:
    """`row`: with its `concerned`, as of visible_faults."""
    return fault_of(row, at, [one.run for one in row.concerned.all()])


def open_faults(cluster: Cluster, nodes: Collection[str] | None = None) -> Mapping[str, list[Fault]]:
    """By node; of these nodes, or of all. One query."""
    now = timezone.now()
    rows = GpuFault.objects.filter(cluster=cluster, cleared_at=None)
    if nodes is not None:
        rows = rows.filter(node__in=nodes)
    found: dict[str, list[Fault]] = defaultdict(list)
    for row in rows.order_by("node", "device", "pk"):
        found[row.node].append(fault_of(row, now))
    return found


def faults_of_node(cluster: Cluster, node: str) -> list[Fault]:
    """For operators: open ones first, then those that ended in the last days. Two queries, one if there is none."""
    now = timezone.now()
    rows = _with_concerned(FaultRun.objects.all()).filter(cluster=cluster, node=node)
    recent = rows.filter(Q(cleared_at=None) | Q(cleared_at__gte=now - CLEARED_SHOWN))
    ordered = sorted(recent.order_by("-id")[:OF_NODE_SHOWN], key=lambda row: row.cleared_at is not None)
    return [with_runs(row, now) for row in ordered]


def unhealthy_devices(faults: Collection[Fault]) -> int:
    """How many GPUs these are."""
    return len({one.row.device for one in faults if one.is_unhealthy})


@dataclass(frozen=True)
class FaultReading:
    """Whether faults are read from Prometheus. `read_until` None: never. `problem`: why not now, "" if they are."""

    read_until: datetime | None
    problem: str


def fault_reading(cluster: Cluster) -> FaultReading:
    """One query."""
    source = FaultSource.objects.filter(cluster=cluster).first()
    if source is None:
        return FaultReading(None, "")
    is_late = source.read_until is None or timezone.now() - source.read_until > MEASURED_WITHIN
    return FaultReading(source.read_until, source.problem or ("The worker does not read them." if is_late else ""))
