"""The state of the installation: tasks past due, outdated data, drift, missing and orphaned objects; faults of GPUs."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, Min, Q
from django.db.models.functions import Now
from django.utils import timezone

from cluster.apply import queries as apply_queries
from cluster.apply import status
from cluster.apply.queries import DriftRecord
from cluster.apply.types import PREVIOUS_CLUSTER
from cluster.certificates.queries import CertificateState, certificate_states
from cluster.mirror.silence import CONTROLLERS, QUEUE_SYSTEM, SCHEDULER
from cluster.models import (
    AppliedObject,
    Cluster,
    MirrorJob,
    MirrorKind,
    MirrorNode,
    MirrorObject,
    MirrorPod,
    MirrorWarning,
    MirrorWorkload,
)
from cluster.observe_only.queries import WAITING
from cluster.reads import queries as mirror
from cluster.reads.observed import AsOf
from desk.health.catalog_checks import CatalogChecks
from desk.health.gpu_operator import GpuOperator, gpu_operator
from desk.health.inconsistencies import Inconsistency
from desk.health.inconsistencies import inconsistencies as contradictions_of
from desk.health.releases import Releases, releases
from portal.core import due
from portal.ops.health import redis_problem
from portal.ui.text import duration_text, plural
from tenants.lifecycle.terminating import queries as terminating_queries
from tenants.lifecycle.terminating.queries import TerminatingNamespace
from tenants.models import Namespace
from usage.faults.queries import Fault, open_faults

SHOWN = 50
# Shorter times are shown in seconds.
SECONDS_SHOWN = 120
# A sweep runs every 5 s: a task that is past due for several sweeps has no worker.
LATE = timedelta(seconds=30)
HEARD = timedelta(seconds=mirror.HEARD_LIMIT_S)
TABLES = {"Node": MirrorNode, "Pod": MirrorPod, "Job": MirrorJob, "Workload": MirrorWorkload, "Event": MirrorWarning}


@dataclass(frozen=True)
class OverdueTable:
    table: str
    rows: int
    oldest_at: datetime

    @property
    def is_late(self) -> bool:
        """Whether a task is past due for longer than workers need."""
        return timezone.now() - self.oldest_at > LATE


@dataclass(frozen=True)
class FailingRow:
    row: str
    error_code: str
    error_text: str
    attempts: int
    due_at: datetime | None


@dataclass(frozen=True)
class MirroredKind:
    kind: str
    objects: int
    listed_at: datetime | None
    last_event_at: datetime
    is_stale: bool


@dataclass(frozen=True)
class DriftedObject:
    kind: str
    name: str
    result: str
    detail: str
    at: datetime | None
    raw: str
    # For operators; "" where the status says it.
    do: str = ""


@dataclass(frozen=True)
class SilentComponent:
    """A component of the cluster that has not renewed its Lease since then, or Redis. `do`: for operators."""

    name: str
    sentence: str
    since: datetime | None
    do: str


@dataclass(frozen=True)
class ForeignLimit:
    """A ResourceQuota or LimitRange of another client in a team's namespace: it can hold workloads back."""

    kind: str
    namespace: str
    name: str
    content: str

    @property
    def do(self) -> str:
        what = f"{self.kind.lower()} {self.name}"
        return f"Ask who created it, or delete it: kubectl -n {self.namespace} delete {what}."


@dataclass(frozen=True)
class OrphanedObject:
    kind: str
    namespace: str
    name: str


@dataclass(frozen=True)
class Health:
    """`is_urgent`: a cause of the verdict stops the portal from following the cluster. `mirror_problem`: the watcher's
    error message, "" while the data is current.
    """

    verdict: str
    mirror_problem: str
    is_well: bool
    is_urgent: bool
    as_of: datetime | None
    is_stale: bool
    overdue: list[OverdueTable]
    problems: list[FailingRow]
    mirrors: list[MirroredKind]
    objects: list[DriftedObject]
    orphans: list[OrphanedObject]
    # Namespaces of teams that were deleted and still exist.
    stuck: list[TerminatingNamespace]
    silent: list[SilentComponent]
    # Limits in namespaces of teams that the portal did not create.
    foreign: list[ForeignLimit]
    certificates: list[CertificateState]
    # None: unknown, because the data is outdated.
    contradictions: list[Inconsistency] | None
    # None: unknown.
    gpu_operator: GpuOperator | None
    # None: unknown.
    releases: Releases | None
    # Open faults of GPUs that count as unhealthy.
    gpu_faults: list[Fault]
    # Of the last 30 days, repaired or not. Not in the verdict.
    drift: list[DriftRecord]
    # Number of changed objects that were repaired within 24 hours, also those that are not in `drift`.
    repaired_today: int

    @property
    def is_late(self) -> bool:
        """Whether a task is past due for longer than workers need."""
        return any(one.is_late for one in self.overdue)

    @property
    def tone(self) -> str:
        return "good" if self.is_well else "bad" if self.is_urgent else "wait"


def health(cluster: Cluster, checks: CatalogChecks) -> Health:
    """A few queries per Due table and about a dozen more, whatever the number of rows. `checks` are in the verdict."""
    as_of = mirror.as_of(cluster.pk)
    overdue, problems = _overdue(), _problems()
    objects, orphans, terminating = (
        _objects(cluster),
        _orphans(cluster),
        terminating_queries.terminating_namespaces(cluster),
    )
    contradictions = contradictions_of(cluster) if as_of.is_current else None
    faults = [one for found in open_faults(cluster).values() for one in found if one.is_unhealthy]
    blocked = [one for one in terminating if timezone.now() - one.since > LATE]
    late = [one for one in overdue if one.is_late]
    silent = [_silent(component, at) for component, at in sorted(as_of.silent.items())]
    is_urgent = bool(late or silent)
    if problem := redis_problem():
        silent.append(SilentComponent("Redis", f"{problem} {_WITHOUT_REDIS}", None, "Check Redis and its sentinels."))
    operator = gpu_operator(cluster, timezone.now())
    running = releases(cluster, timezone.now())
    bad = [f"{one.name} does not respond" for one in silent]
    certificates = certificate_states()
    bad += [
        f"the {one.name} {'has expired' if one.is_expired else 'expires soon'}"
        for one in certificates
        if one.is_to_renew
    ]
    if late:
        bad.append(f"{plural(sum(one.rows for one in late), 'task')} past due for over {LATE.seconds} s")
    if cluster.other_uid:
        bad.append("the portal reaches another cluster than before")
    if not as_of.is_current:
        bad.append(_outdated(as_of))
    if objects:
        bad.append(f"{plural(len(objects), 'object')} out of sync")
    if problems:
        bad.append(f"{plural(len(problems), 'failing task')}")
    if orphans:
        bad.append(f"{plural(len(orphans), 'orphaned object')}")
    if blocked:
        bad.append(f"{plural(len(blocked), 'namespace')} stuck in termination")
    if operator and operator.wrong:
        bad.append("GPU Operator not ready")
    if running and running.problems:
        bad.append("processes of the portal not ready or not of one release")
    if faults:
        bad.append(plural(len(faults), "GPU fault"))
    if contradictions:
        bad.append(f"{plural(len(contradictions), 'inconsistent run')}")
    if checks.faults:
        bad.append(f"{plural(checks.faults, 'catalog problem')}")
    if checks.lines is None:
        bad.append("catalog not checked")
    return Health(
        verdict="Degraded: " + ", ".join(bad) + "."
        if bad
        else f"Healthy: no tasks past due for over {LATE.seconds} s, current cluster data, all objects in sync, "
        "no catalog problems.",
        mirror_problem="" if as_of.is_current else as_of.problem,
        is_well=not bad,
        is_urgent=is_urgent or not as_of.is_current or any(one.is_expired for one in certificates),
        as_of=as_of.at,
        is_stale=not as_of.is_current,
        overdue=overdue,
        problems=problems,
        mirrors=_mirrors(cluster),
        objects=objects,
        orphans=orphans,
        stuck=terminating,
        silent=silent,
        foreign=_foreign(cluster),
        certificates=certificates,
        contradictions=contradictions,
        gpu_operator=operator,
        releases=running,
        gpu_faults=faults[:SHOWN],
        drift=apply_queries.drift_records(limit=SHOWN, cluster_id=cluster.pk),
        repaired_today=apply_queries.repaired_count(cluster.pk, since=timezone.now() - timedelta(days=1)),
    )


_WITHOUT_REDIS = "Pages work and update later. Workers begin nothing that is new until it is back."
_STOPPED = {
    QUEUE_SYSTEM: ("Kueue", "Nothing is admitted.", "Check the pods of kueue-controller-manager in kueue-system."),
    SCHEDULER: ("kube-scheduler", "No pod gets a node.", "Check the pods of kube-scheduler in kube-system."),
    CONTROLLERS: (
        "kube-controller-manager",
        "Jobs get no pods, and namespaces are not deleted.",
        "Check the pods of kube-controller-manager in kube-system.",
    ),
}


def _silent(component: str, at: datetime) -> SilentComponent:
    name, then, do = _STOPPED[component]
    return SilentComponent(name, f"{name} has not renewed its Lease since then. {then}", at, do)


def _foreign(cluster: Cluster) -> list[ForeignLimit]:
    ours = Namespace.objects.filter(cluster=cluster).values("name")
    rows = MirrorObject.objects.filter(cluster_id=cluster.pk, kind__in=("ResourceQuota", "LimitRange"), owner="")
    return [
        ForeignLimit(row.kind, row.namespace, row.name, _content(row.record))
        for row in rows.filter(namespace__in=ours).order_by("namespace", "kind", "name")[:SHOWN]
    ]


def _content(record: dict[str, Any]) -> str:
    hard = record.get("hard")
    return ", ".join(f"{key} {hard[key]}" for key in sorted(hard)) if hard else ""


def _outdated(as_of: AsOf) -> str:
    if as_of.at is None:
        return "cluster data unknown"
    seconds = int((timezone.now() - as_of.at).total_seconds())
    if seconds < mirror.BEAT_LIMIT_S:
        return "cluster updates interrupted"
    return f"no cluster updates for {f'{seconds} s' if seconds < SECONDS_SHOWN else duration_text(seconds // 60)}"


def _overdue() -> list[OverdueTable]:
    found = []
    for model in due.due_models():
        rows = model._base_manager.filter(due_at__lte=Now()).filter(Q(leased_until=None) | Q(leased_until__lte=Now()))
        late = rows.aggregate(count=Count("pk"), oldest=Min("due_at"))
        if late["count"]:
            found.append(OverdueTable(due.table_label(model), late["count"], late["oldest"]))
    return sorted(found, key=lambda one: one.oldest_at)


def _problems() -> list[FailingRow]:
    found = []
    for model in due.due_models():
        rows = model._base_manager.exclude(error_code__in=("", WAITING)).order_by("due_at")[:SHOWN]
        for row in rows:
            found.append(
                FailingRow(f"{due.table_label(model)} {row}", row.error_code, row.error_text, row.attempts, row.due_at)
            )
    return found[:SHOWN]


def _mirrors(cluster: Cluster) -> list[MirroredKind]:
    counts = {kind: model._base_manager.filter(cluster_id=cluster.pk).count() for kind, model in TABLES.items()}
    others = MirrorObject.objects.filter(cluster_id=cluster.pk).values("kind").annotate(count=Count("pk"))
    counts |= {row["kind"]: row["count"] for row in others}
    now = timezone.now()
    return [
        MirroredKind(
            kind=row.kind,
            objects=counts.get(row.kind, 0),
            listed_at=row.listed_at,
            last_event_at=row.heard_at,
            is_stale=row.listed_at is None or bool(row.problem) or now - row.heard_at > HEARD,
        )
        for row in MirrorKind.objects.filter(cluster_id=cluster.pk).order_by("kind")
    ]


def _objects(cluster: Cluster) -> list[DriftedObject]:
    absent = apply_queries.missing_objects(cluster.pk)
    astray = apply_queries.OUT_OF_SYNC | Q(pk__in=absent)
    rows = AppliedObject.objects.filter(cluster=cluster).filter(astray).order_by("-sent_at")[:SHOWN]
    return [_object(row, absent) for row in rows]


# Objects that are created once, by kind: what happens when another client deletes one, and what to do.
_CREATED_ONCE = {
    "Job": (
        "It was deleted in the cluster. A job is not created again: its run is recorded as lost.",
        "The owner of the workload can start it again. If it is still listed after 1 minute, check the worker's log.",
    ),
    "PersistentVolumeClaim": (
        "It was deleted in the cluster. A volume is not created again: a new one would be empty.",
        "Restore it from a backup under the same name, or let the team delete the volume.",
    ),
}


def _object(row: AppliedObject, absent: Collection[int]) -> DriftedObject:
    name = f"{row.namespace}/{row.name}" if row.namespace else row.name
    sentence = status.status_sentence(row, absent)
    raw = row.text if row.result == AppliedObject.Result.REFUSED and row.text != sentence else ""
    shown = status.object_status(row, absent)
    do = ""
    if shown == "missing" and row.kind in _CREATED_ONCE:
        sentence, do = _CREATED_ONCE[row.kind]
        if row.code == PREVIOUS_CLUSTER:
            sentence = "It was in the cluster that another one has replaced, and is not created again."
    return DriftedObject(row.kind, name, shown, sentence, row.sent_at, raw, do)


def _orphans(cluster: Cluster) -> list[OrphanedObject]:
    return [OrphanedObject(*one) for one in apply_queries.orphaned_objects(cluster.pk, limit=SHOWN)]
