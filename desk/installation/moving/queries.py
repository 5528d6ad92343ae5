"""What a move to another cluster would make again and what it would lose, and what is left after one. Rows and mirror
alone: the previous cluster need not answer.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime

from django.db.models import QuerySet

from accounts.models import Event
from catalog.classes.capacity.queries import capacities
from catalog.models import GpuClass
from cluster.apply.types import PREVIOUS_CLUSTER
from cluster.models import AppliedObject, Cluster
from cluster.reads import queries as mirror
from operations.models import Adoption, Maintenance
from portal.core.due import owner_label
from tenants.models import Namespace
from workloads.models import Run, Volume
from workloads.status.outcome import CLUSTER_REPLACED
from workloads.storage.claim_states import CLAIM, claim_states


@dataclass(frozen=True)
class RunOfMove:
    """`was_sent`: its Job is in the cluster, so it is lost with it. `checkpoints`: declared; `volume`: "" if none."""

    workload: str
    number: int
    kind: str
    was_sent: bool
    checkpoints: bool
    volume: str


@dataclass(frozen=True)
class LeftVolume:
    """`state`: of its claim, None: unknown."""

    name: str
    size_gib: int
    state: str | None = None


@dataclass(frozen=True)
class TeamMove:
    """`is_done`: its namespace is in the cluster as its row wants it; `problem`: why not, as a worker said last.
    `is_adopted`: others had it before; `volumes_until`: of a team that is closed.
    """

    team: str
    namespace: str
    runs: list[RunOfMove] = field(default_factory=list)
    volumes: list[LeftVolume] = field(default_factory=list)
    is_done: bool = False
    problem: str = ""
    is_adopted: bool = False
    volumes_until: datetime | None = None


@dataclass(frozen=True)
class Move:
    """`replaced_at`: when another cluster was confirmed last. `is_known`: the mirror is current. `teams`: all of them
    before a move, those with something left after it. `lost`: runs that were recorded as lost since.
    `empty_classes`: None if unknown. `maintenances`: in progress, with the names of their nodes.
    `were_adopted`: teams whose adopted namespace was missing, so that it is the portal's own now.
    """

    uid: str
    other_uid: str
    other_since: datetime | None
    replaced_at: datetime | None
    is_known: bool
    problem: str
    teams: list[TeamMove]
    lost: int
    empty_classes: list[str] | None
    maintenances: list[tuple[str, list[str]]]
    were_adopted: list[str]

    @property
    def is_after(self) -> bool:
        """Whether what is left of a move is shown, and not what a move would do."""
        return self.replaced_at is not None and not self.other_uid

    @property
    def left(self) -> list[TeamMove]:
        return [one for one in self.teams if one.runs or one.volumes or not one.is_done]


def move_of(cluster: Cluster) -> Move:
    """A few queries for the installation and three for each team."""
    replaced_at = _replaced_at(cluster)
    as_of = mirror.as_of(cluster.pk)
    is_after = replaced_at is not None and not cluster.other_uid
    spaces = Namespace.objects.filter(cluster=cluster, gone_at=None).select_related("tenant").order_by("tenant__slug")
    teams = [_team(one, is_after=is_after, is_known=as_of.is_current) for one in spaces]
    lost = Run.objects.filter(workload__namespace__cluster=cluster, reason=CLUSTER_REPLACED.reason)
    return Move(
        uid=cluster.uid,
        other_uid=cluster.other_uid,
        other_since=cluster.other_since,
        replaced_at=replaced_at,
        is_known=as_of.is_current,
        problem=as_of.problem,
        teams=teams,
        lost=lost.filter(ended_at__gte=replaced_at).count() if replaced_at else 0,
        empty_classes=_empty_classes(cluster) if is_after and as_of.is_current else None,
        maintenances=[
            (str(one), [node.name for node in one.nodes.all()])
            for one in Maintenance.objects.filter(cluster=cluster, ended_at=None).prefetch_related("nodes")
        ],
        were_adopted=list(
            Adoption.objects.filter(adopted_at__isnull=False, undone_at=None)
            .filter(namespace__cluster=cluster, namespace__gone_at=None, namespace__origin=Namespace.Origin.PORTAL)
            .order_by("namespace__tenant__slug")
            .values_list("namespace__tenant__slug", flat=True)
        ),
    )


def _replaced_at(cluster: Cluster) -> datetime | None:
    found = Event.objects.filter(verb="cluster.replaced", row=f"{cluster._meta.label_lower}.{cluster.pk}")
    return found.order_by("-pk").values_list("at", flat=True).first()


def _team(row: Namespace, *, is_after: bool, is_known: bool) -> TeamMove:
    jobs = AppliedObject.objects.filter(cluster_id=row.cluster_id, kind="Job", namespace=row.name)
    if is_after:
        jobs = jobs.filter(code=PREVIOUS_CLUSTER)
    sent = set(jobs.exclude(result__in=_NOT_CREATED).values_list("name", flat=True))
    volumes = Volume.objects.filter(namespace=row, gone_at=None).order_by("name")
    is_done = row.generation == row.observed_generation and not row.error_code and _is_applied(row)
    return TeamMove(
        team=row.tenant.slug,
        namespace=row.name,
        runs=[one for one in _runs(row, sent) if one.was_sent or not is_after],
        volumes=_left(row, volumes, is_known=is_known) if is_after else [_volume(one, None) for one in volumes],
        is_done=is_done,
        problem=row.error_text,
        is_adopted=row.origin == Namespace.Origin.ADOPTED,
        volumes_until=row.volumes_until if row.closes_at is not None else None,
    )


_NOT_CREATED = (AppliedObject.Result.REFUSED, AppliedObject.Result.FOREIGN)


def _is_applied(row: Namespace) -> bool:
    ours = AppliedObject.objects.filter(cluster_id=row.cluster_id, owner=owner_label(row), kind="Namespace")
    return row.origin == Namespace.Origin.UNADOPTED or ours.filter(result=AppliedObject.Result.APPLIED).exists()


def _runs(row: Namespace, sent: Collection[str]) -> list[RunOfMove]:
    """Active runs, by name."""
    rows = Run.objects.filter(workload__namespace=row, ended_at=None).select_related("workload")
    return [
        RunOfMove(
            run.workload.name,
            run.number,
            run.workload.kind,
            f"{run.workload.name}-{run.number}" in sent,
            bool(run.spec.get("checkpoints")),
            run.spec.get("claim", ""),
        )
        for run in rows.order_by("workload__name")
    ]


def _left(row: Namespace, volumes: QuerySet[Volume], *, is_known: bool) -> list[LeftVolume]:
    """Those of the previous cluster whose claim is not in this one."""
    owners = {owner_label(one): one for one in volumes}
    marked = AppliedObject.objects.filter(
        cluster_id=row.cluster_id, kind=CLAIM, code=PREVIOUS_CLUSTER, owner__in=list(owners)
    )
    found = sorted((owners[owner] for owner in marked.values_list("owner", flat=True)), key=lambda one: one.name)
    states = claim_states(row.cluster_id, row.name, [one.name for one in found]) if is_known else {}
    all_of = [_volume(one, states[one.name].phase if one.name in states else None) for one in found]
    return [one for one in all_of if one.state in (None, "", "missing")]


def _volume(row: Volume, state: str | None) -> LeftVolume:
    return LeftVolume(row.name, row.size_gib, state)


def _empty_classes(cluster: Cluster) -> list[str]:
    in_use = GpuClass.objects.filter(cluster=cluster).exclude(life_cycle=GpuClass.LifeCycle.DRAFT)
    rows = in_use.exclude(interface__in=(GpuClass.Interface.STORAGE, GpuClass.Interface.NONE))
    classes = list(rows.order_by("slug"))
    found = capacities(cluster, classes)
    return [one.slug for one in classes if found[one.pk].allocatable == 0]
