"""The whole queue for staff: every queued run, by class and team in Kueue's order, and what blocks it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.db import connection
from django.utils import timezone

from accounts.rest.paging import LIMIT_DEFAULT
from catalog.classes import life_cycle
from catalog.classes import policy as class_policy
from catalog.classes import queries as catalog
from catalog.models import GpuClass
from cluster.manifests.run_spec import DEFAULT_PRIORITY
from cluster.models import AppliedObject, Cluster
from cluster.reads import queries as mirror
from cluster.reads.observed import AsOf, Job
from cluster.reads.observed import KueueWorkload as Queued
from desk.queue.cursor import decode_cursor, encode_cursor, sort_key
from desk.queue.levels import LevelNeed, level_need, level_nodes
from desk.queue.sql import AFTER, BY_TEAM, COUNTS, PAGE, SUMS, QueueRecord
from tenants.models import Namespace
from workloads.core.class_nodes import ClassNodes
from workloads.core.observation import Observation
from workloads.status.desired_run import DesiredRun
from workloads.status.observations.equivalent_waits import with_equivalent_messages
from workloads.status.phase import status_of
from workloads.status.types import Status

# A run's blocker is found only by examining it: the size of one chunk, and the limit for one response.
CHUNK = 500
LOOKED_AT_MOST = 2_000


@dataclass(frozen=True)
class QueueFilter:
    """`reason`: a code of `Status.reason`."""

    gpu_class: str = ""
    team: str = ""
    reason: str = ""


@dataclass(frozen=True)
class QueuedRun:
    """`place`: 1 is the first of its team for the class. `status` is the one on the team's own page. `goes_as`: its
    priority by name. `moving_to`: the priority that operators set and that Kueue does not have yet.
    """

    run: int
    number: int
    workload: str
    kind: str
    team: str
    gpu_class: str
    class_name: str
    units: int
    priority: int
    place: int
    is_suspended: bool
    status: Status
    waits_since: datetime
    goes_as: str = ""
    moving_to: str = ""
    # None: it requires no topology level.
    needs: LevelNeed | None = None


@dataclass(frozen=True)
class ClassQueue:
    """One class and its queue. `hold`: why its scheduling is paused, "" while it is not."""

    slug: str
    name: str
    unit: str
    runs: int
    units: int
    oldest_at: datetime | None
    hold: str
    is_held: bool
    is_open: bool


@dataclass(frozen=True)
class QueuePage:
    """`next_cursor`: there are more runs. With a reason, possibly none of them matches."""

    lines: list[ClassQueue]
    rows: list[QueuedRun]
    next_cursor: str | None
    as_of: AsOf

    @property
    def is_stale(self) -> bool:
        return not self.as_of.is_current

    @property
    def busy_lines(self) -> list[ClassQueue]:
        """Classes with queued runs, or whose scheduling is paused."""
        return [one for one in self.lines if one.runs or one.is_held]

    @property
    def quiet_lines(self) -> list[ClassQueue]:
        return [one for one in self.lines if not (one.runs or one.is_held)]


@dataclass(frozen=True)
class ReasonCounts:
    """How many runs each reason blocks, the highest first, among the first `looked_at` of the queue."""

    runs: dict[str, int]
    looked_at: int
    is_all: bool


def read_queue(
    cluster: Cluster, chosen: QueueFilter, *, cursor: str | None = None, limit: int = LIMIT_DEFAULT
) -> QueuePage:
    """At most eleven queries, whatever the length of the queue; with a reason, nine more for each CHUNK of examined
    runs until the page is full. Raises Refused (bad_cursor).
    """
    as_of = mirror.as_of(cluster.pk, "Job", "Workload")
    classes = {one.slug: one for one in GpuClass.objects.filter(cluster=cluster).order_by("slug")}
    after = decode_cursor(cursor) if cursor else None
    sums = _sums(cluster)
    if chosen.reason:
        rows, last = _blocked_by(cluster, chosen, after, limit, classes, is_known=as_of.is_known)
    else:
        raw = _page(cluster, chosen, after, limit + 1)
        rows = _rows(cluster, raw[:limit], classes, is_known=as_of.is_known)
        last = raw[limit - 1] if len(raw) > limit else None
    return QueuePage(
        lines=[_line(one, sums.get(one.slug)) for one in classes.values() if _is_shown(one, sums)],
        rows=rows,
        next_cursor=encode_cursor(last) if last else None,
        as_of=as_of,
    )


def reason_counts(cluster: Cluster, chosen: QueueFilter) -> ReasonCounts:
    """For the chosen class and team; the chosen reason is ignored."""
    is_known = mirror.as_of(cluster.pk, "Job", "Workload").is_known
    classes = {one.slug: one for one in GpuClass.objects.filter(cluster=cluster)}
    counted: Counter[str] = Counter()
    looked_at, is_all = 0, True
    for chunk, is_last in _chunks(cluster, chosen, None):
        counted.update(row.status.reason for row in _rows(cluster, chunk, classes, is_known=is_known))
        looked_at, is_all = looked_at + len(chunk), is_last
    return ReasonCounts(dict(counted.most_common()), looked_at, is_all)


def class_queues(cluster: Cluster) -> list[ClassQueue]:
    """The queue of every class, without its runs. Two queries."""
    sums = _sums(cluster)
    return [_line(one, sums.get(one.slug)) for one in GpuClass.objects.filter(cluster=cluster) if _is_shown(one, sums)]


def queued_run_counts(cluster: Cluster, teams: Collection[str]) -> dict[str, tuple[int, int]]:
    """By class slug: the number of queued runs, and how many of them are of these teams. One query."""
    with connection.cursor() as found:
        found.execute(COUNTS, {"cluster": cluster.pk, "teams": list(teams)})
        return {slug: (total, own) for slug, total, own in found.fetchall()}


def queued_runs_by_team(cluster: Cluster, teams: Collection[str]) -> dict[str, int]:
    """By team, for these; teams without queued runs are left out. One query."""
    with connection.cursor() as found:
        found.execute(BY_TEAM, {"cluster": cluster.pk, "teams": list(teams)})
        return dict(found.fetchall())


# ---- one page of the queue ---------------------------------------------------------------------------------------


def _page(cluster: Cluster, chosen: QueueFilter, after: list[Any] | None, limit: int) -> list[QueueRecord]:
    """One query; applies `chosen` except the reason."""
    values: dict[str, Any] = {f"k{number}": key for number, key in enumerate(after or ())}
    values |= {"cluster": cluster.pk, "class": chosen.gpu_class, "team": chosen.team, "limit": limit}
    with connection.cursor() as found:
        found.execute(PAGE.format(after="" if after is None else AFTER), values)
        return [QueueRecord(*row) for row in found.fetchall()]


def _chunks(cluster: Cluster, chosen: QueueFilter, after: list[Any] | None) -> Iterator[tuple[list[QueueRecord], bool]]:
    """Yields the runs after `after`, and whether they are the last, up to LOOKED_AT_MOST runs."""
    for _ in range(LOOKED_AT_MOST // CHUNK):
        raw = _page(cluster, chosen, after, CHUNK + 1)
        yield raw[:CHUNK], len(raw) <= CHUNK
        if len(raw) <= CHUNK:
            return
        after = sort_key(raw[CHUNK - 1])


def _blocked_by(
    cluster: Cluster,
    chosen: QueueFilter,
    after: list[Any] | None,
    limit: int,
    classes: Mapping[str, GpuClass],
    *,
    is_known: bool,
) -> tuple[list[QueuedRun], QueueRecord | None]:
    """Returns also the run after which more runs remain to be examined; None: there are none."""
    found: list[QueuedRun] = []
    last: QueueRecord | None = None
    for chunk, is_end in _chunks(cluster, chosen, after):
        for one, row in zip(chunk, _rows(cluster, chunk, classes, is_known=is_known), strict=True):
            if row.status.reason != chosen.reason:
                continue
            if len(found) == limit:
                return found, last
            found.append(row)
            last = one
        if is_end:
            return found, None
        if len(found) < limit:
            last = chunk[-1]
    return found, last


def _rows(
    cluster: Cluster, raw: Collection[QueueRecord], classes: Mapping[str, GpuClass], *, is_known: bool
) -> list[QueuedRun]:
    uids = [one.job_uid for one in raw if one.job_uid]
    jobs = {job.uid: job for job in mirror.jobs_of(cluster.pk, uids)}
    queued = with_equivalent_messages(cluster.pk, {one.job_uid: one for one in mirror.workloads_of(cluster.pk, uids)})
    names = [one.job_name for one in raw if not one.job_uid]
    sent = {
        (row.owner, row.name): row for row in AppliedObject.objects.filter(cluster=cluster, kind="Job", name__in=names)
    }
    nodes = level_nodes(cluster.pk, raw) if is_known else {}
    now = timezone.now()
    return [
        QueuedRun(
            run=one.run,
            number=one.number,
            workload=one.workload,
            kind=one.kind,
            team=one.team,
            gpu_class=one.gpu_class,
            class_name=classes[one.gpu_class].name if one.gpu_class in classes else one.gpu_class,
            units=one.units,
            priority=-one.lower,
            place=one.place,
            is_suspended=one.wanted != Namespace.Wanted.ACTIVE,
            status=status_of(
                _wish(one, classes.get(one.gpu_class), sent.get((_owner(one), one.job_name)), now),
                _seen(one, jobs, queued, nodes) if is_known else None,
                now=now,
            ),
            waits_since=one.requested_at,
            goes_as=one.changed_to or one.launched_as or DEFAULT_PRIORITY[one.kind],
            moving_to=one.changed_to if one.changed_to != one.known_as else "",
            needs=level_need(one, nodes),
        )
        for one in raw
    ]


def _wish(one: QueueRecord, gpu_class: GpuClass | None, sent: AppliedObject | None, now: datetime) -> DesiredRun:
    return DesiredRun(
        kind=one.kind,
        class_name=gpu_class.name if gpu_class else one.gpu_class,
        class_slug=one.gpu_class,
        units=one.each,
        workers=one.workers,
        required_level=one.level,
        image=one.image,
        number=one.number,
        requested_at=one.requested_at,
        hold=life_cycle.hold_sentence(gpu_class, now=now) if gpu_class else "",
        borrowing_limit=gpu_class.borrowing_limit if gpu_class else None,
        sent=sent.result if sent else "",
        sent_at=sent.sent_at if sent else None,
        sent_text=sent.text if sent else "",
    )


def _seen(
    one: QueueRecord, jobs: Mapping[str, Job], queued: Mapping[str, Queued], nodes: Mapping[int, ClassNodes]
) -> Observation:
    if not one.job_uid:
        return Observation()
    seen = Observation(job=jobs.get(one.job_uid), queue=queued.get(one.job_uid), position=one.place - 1)
    return replace(seen, nodes=nodes.get(one.run))


def _owner(one: QueueRecord) -> str:
    return f"workloads.workload.{one.workload_id}"


# ---- classes of the queue ----------------------------------------------------------------------------------------


def _sums(cluster: Cluster) -> dict[str, list[Any]]:
    with connection.cursor() as found:
        found.execute(SUMS, {"cluster": cluster.pk})
        return {slug: rest for slug, *rest in found.fetchall()}


def _is_shown(one: GpuClass, sums: Mapping[str, Any]) -> bool:
    return one.slug in sums or (one.life_cycle in catalog.OPEN_STATES and not one.is_storage)


def _line(one: GpuClass, sums: list[Any] | None) -> ClassQueue:
    runs, units, oldest_at = sums or (0, 0, None)
    return ClassQueue(
        slug=one.slug,
        name=one.name,
        unit=catalog.unit_of(one),
        runs=runs,
        units=units,
        oldest_at=oldest_at,
        hold=life_cycle.hold_sentence(one, now=timezone.now()),
        is_held=class_policy.is_held(one),
        is_open=one.life_cycle in catalog.OPEN_STATES,
    )
