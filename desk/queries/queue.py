"""The whole queue for staff: every run that waits, by class and team in Kueue's order, and what blocks it."""

from __future__ import annotations

import base64
import binascii
import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection
from django.utils import timezone

from accounts.actor import Actor
from accounts.models import Role
from accounts.paging import LIMIT_DEFAULT
from catalog import life_cycle
from catalog import queries as catalog
from catalog.models import GpuClass
from cluster import queries as mirror
from cluster.models import AppliedObject, Cluster, MirrorJob, MirrorWorkload
from cluster.observed import AsOf, Job
from cluster.observed import Workload as Queued
from cluster.run_spec import USUAL_PRIORITY
from portal.errors import NOT_FOUND, Refused, refuse
from tenants.models import Namespace, Tenant
from workloads.models import Run, Workload
from workloads.phase import Status, status
from workloads.queries.alike import as_said_of_alike
from workloads.queries.sizes import TOTAL_UNITS
from workloads.seen import Seen
from workloads.wish import Wish

STAFF = (Role.OPERATOR, Role.ADMIN, Role.AUDITOR)
# What blocks a run is found by looking at it: so many at once, and no more than that for one answer.
CHUNK = 500
LOOKED_AT_MOST = 2_000


@dataclass(frozen=True)
class Filter:
    """`reason`: a code of `Status.reason`."""

    gpu_class: str = ""
    team: str = ""
    reason: str = ""


@dataclass(frozen=True)
class Waiting:
    """`place`: 1 is the first of its team for the class. `status` is what the team's own page says. `goes_as`: its
    priority by name. `moving_to`: the one that operators gave it and that Kueue does not have yet.
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


@dataclass(frozen=True)
class Line:
    """One class: how much waits for it. `hold`: what is said of its hold, "" while it is open."""

    slug: str
    name: str
    unit: str
    runs: int
    units: int
    oldest_at: datetime | None
    hold: str
    is_open: bool


@dataclass(frozen=True)
class Queue:
    """`next_cursor`: there is more to look at. With a reason it may lead to nothing that matches."""

    lines: list[Line]
    rows: list[Waiting]
    next_cursor: str | None
    as_of: AsOf

    @property
    def is_stale(self) -> bool:
        return not self.as_of.is_current

    @property
    def busy_lines(self) -> list[Line]:
        """Classes that something waits for, or that are held."""
        return [one for one in self.lines if one.runs or one.hold]

    @property
    def quiet_lines(self) -> list[Line]:
        return [one for one in self.lines if not (one.runs or one.hold)]


@dataclass(frozen=True)
class Reasons:
    """How many runs each reason blocks, the most first, among the first `looked_at` of the queue."""

    runs: dict[str, int]
    looked_at: int
    is_all: bool


def reader(by: Actor) -> Actor:
    """Who may read the whole queue; for all others it is not there. Raises Refused (404)."""
    if by.user is not None and not any(by.has_role(role) for role in STAFF):
        raise Refused(NOT_FOUND)
    return by


def queue(cluster: Cluster, chosen: Filter, *, cursor: str | None = None, limit: int = LIMIT_DEFAULT) -> Queue:
    """At most eight queries, whatever waits; by a reason, six more for each CHUNK of runs that is looked at until the
    page is full. Raises Refused (bad_cursor).
    """
    as_of = mirror.as_of(cluster.pk, "Job", "Workload")
    classes = {one.slug: one for one in GpuClass.objects.filter(cluster=cluster).order_by("slug")}
    after = _decode(cursor) if cursor else None
    with connection.cursor() as found:
        found.execute(_SUMS, {"cluster": cluster.pk})
        sums = {slug: rest for slug, *rest in found.fetchall()}
    if chosen.reason:
        rows, last = _blocked_by(cluster, chosen, after, limit, classes, is_known=as_of.is_known)
    else:
        raw = _page(cluster, chosen, after, limit + 1)
        rows = _rows(cluster, raw[:limit], classes, is_known=as_of.is_known)
        last = raw[limit - 1] if len(raw) > limit else None
    return Queue(
        lines=[_line(one, sums.get(one.slug)) for one in classes.values() if _is_shown(one, sums)],
        rows=rows,
        next_cursor=_encode(last) if last else None,
        as_of=as_of,
    )


def reasons(cluster: Cluster, chosen: Filter) -> Reasons:
    """Of the chosen class and team, whatever reason is chosen."""
    is_known = mirror.as_of(cluster.pk, "Job", "Workload").is_known
    classes = {one.slug: one for one in GpuClass.objects.filter(cluster=cluster)}
    counted: Counter[str] = Counter()
    looked_at, is_all = 0, True
    for chunk, is_last in _chunks(cluster, chosen, None):
        counted.update(row.status.reason for row in _rows(cluster, chunk, classes, is_known=is_known))
        looked_at, is_all = looked_at + len(chunk), is_last
    return Reasons(dict(counted.most_common()), looked_at, is_all)


def waiting_runs(cluster: Cluster, teams: Collection[str]) -> dict[str, tuple[int, int]]:
    """By class slug: how many runs wait, and how many of them are of these teams. One query."""
    with connection.cursor() as found:
        found.execute(_COUNTS, {"cluster": cluster.pk, "teams": list(teams)})
        return {slug: (total, own) for slug, total, own in found.fetchall()}


# ---- one page ----------------------------------------------------------------------------------------------------


def _page(cluster: Cluster, chosen: Filter, after: list[Any] | None, limit: int) -> list[_Raw]:
    """One query; of `chosen` all but the reason."""
    values: dict[str, Any] = {f"k{number}": key for number, key in enumerate(after or ())}
    values |= {"cluster": cluster.pk, "class": chosen.gpu_class, "team": chosen.team, "limit": limit}
    with connection.cursor() as found:
        found.execute(_PAGE.format(after="" if after is None else _AFTER), values)
        return [_Raw(*row) for row in found.fetchall()]


def _chunks(cluster: Cluster, chosen: Filter, after: list[Any] | None) -> Iterator[tuple[list[_Raw], bool]]:
    """What follows `after`, and whether it is the end, up to LOOKED_AT_MOST runs."""
    for _ in range(LOOKED_AT_MOST // CHUNK):
        raw = _page(cluster, chosen, after, CHUNK + 1)
        yield raw[:CHUNK], len(raw) <= CHUNK
        if len(raw) <= CHUNK:
            return
        after = _keys(raw[CHUNK - 1])


def _blocked_by(
    cluster: Cluster,
    chosen: Filter,
    after: list[Any] | None,
    limit: int,
    classes: Mapping[str, GpuClass],
    *,
    is_known: bool,
) -> tuple[list[Waiting], _Raw | None]:
    """With the run after which there is more to look at; None: there is not."""
    found: list[Waiting] = []
    last: _Raw | None = None
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


@dataclass(frozen=True)
class _Raw:
    gpu_class: str
    team: str
    is_outside: int
    lower: int
    since: datetime
    uid: str
    run: int
    number: int
    workload_id: int
    workload: str
    kind: str
    image: str
    units: int
    requested_at: datetime
    wanted: str
    job_name: str
    job_uid: str | None
    launched_as: str
    changed_to: str
    known_as: str
    place: int


def _rows(cluster: Cluster, raw: Collection[_Raw], classes: Mapping[str, GpuClass], *, is_known: bool) -> list[Waiting]:
    uids = [one.job_uid for one in raw if one.job_uid]
    jobs = {job.uid: job for job in mirror.jobs_of(cluster.pk, uids)}
    queued = as_said_of_alike(cluster.pk, {one.job_uid: one for one in mirror.workloads_of(cluster.pk, uids)})
    names = [one.job_name for one in raw if not one.job_uid]
    sent = {
        (row.owner, row.name): row for row in AppliedObject.objects.filter(cluster=cluster, kind="Job", name__in=names)
    }
    now = timezone.now()
    return [
        Waiting(
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
            status=status(
                _wish(one, classes.get(one.gpu_class), sent.get((_owner(one), one.job_name)), now),
                _seen(one, jobs, queued) if is_known else None,
                now=now,
            ),
            waits_since=one.requested_at,
            goes_as=one.changed_to or one.launched_as or USUAL_PRIORITY[one.kind],
            moving_to=one.changed_to if one.changed_to != one.known_as else "",
        )
        for one in raw
    ]


def _wish(one: _Raw, gpu_class: GpuClass | None, sent: AppliedObject | None, now: datetime) -> Wish:
    return Wish(
        kind=one.kind,
        class_name=gpu_class.name if gpu_class else one.gpu_class,
        class_slug=one.gpu_class,
        units=one.units,
        image=one.image,
        number=one.number,
        requested_at=one.requested_at,
        hold=life_cycle.hold(gpu_class, now=now) if gpu_class else "",
        sent=sent.result if sent else "",
        sent_at=sent.sent_at if sent else None,
        sent_text=sent.text if sent else "",
    )


def _seen(one: _Raw, jobs: Mapping[str, Job], queued: Mapping[str, Queued]) -> Seen:
    if not one.job_uid:
        return Seen()
    return Seen(job=jobs.get(one.job_uid), queue=queued.get(one.job_uid), position=one.place - 1)


def _owner(one: _Raw) -> str:
    return f"workloads.workload.{one.workload_id}"


# ---- classes -----------------------------------------------------------------------------------------------------


def _is_shown(one: GpuClass, sums: Mapping[str, Any]) -> bool:
    return one.slug in sums or (one.life_cycle in catalog.OPEN and not one.is_storage)


def _line(one: GpuClass, sums: list[Any] | None) -> Line:
    runs, units, oldest_at = sums or (0, 0, None)
    return Line(
        slug=one.slug,
        name=one.name,
        unit=catalog.unit_of(one),
        runs=runs,
        units=units,
        oldest_at=oldest_at,
        hold=life_cycle.hold(one, now=timezone.now()),
        is_open=one.life_cycle in catalog.OPEN,
    )


# ---- the queue as text -------------------------------------------------------------------------------------------

# What Kueue has not given quota, and what has not come as far as Kueue. An interrupted run waits again.
_WAITING = f"""
WITH waiting AS (
    SELECT run.spec ->> 'gpu_class' AS gpu_class, tenant.slug AS team, (queued.id IS NULL)::int AS is_outside,
           -coalesce((queued.record ->> 'priority')::int, 0) AS lower,
           coalesce(queued.created_at, run.requested_at) AS since,
           coalesce(queued.uid, '') COLLATE "C" AS uid, run.id AS run, run.number,
           workload.id AS workload_id, workload.name AS workload, workload.kind, run.spec ->> 'image' AS image,
           {TOTAL_UNITS} AS units, run.requested_at, namespace.wanted,
           workload.name || '-' || run.number AS job_name, job.uid AS job_uid,
           coalesce(run.spec ->> 'priority', '') AS launched_as, run.priority AS changed_to,
           coalesce(queued.record ->> 'priority_class', '') AS known_as
      FROM {Run._meta.db_table} run
      JOIN {Workload._meta.db_table} workload ON workload.id = run.workload_id
      JOIN {Namespace._meta.db_table} namespace ON namespace.id = workload.namespace_id
      JOIN {Tenant._meta.db_table} tenant ON tenant.id = workload.tenant_id
      LEFT JOIN {MirrorJob._meta.db_table} job
        ON job.cluster_id = namespace.cluster_id AND job.namespace = namespace.name
       AND job.name = workload.name || '-' || run.number AND job.owner = 'workloads.workload.' || workload.id
      LEFT JOIN {MirrorWorkload._meta.db_table} queued
        ON queued.cluster_id = namespace.cluster_id AND queued.job_uid = job.uid
     WHERE namespace.cluster_id = %(cluster)s AND run.ended_at IS NULL AND run.stop_requested_at IS NULL
       AND CASE WHEN queued.id IS NULL THEN run.admitted_at IS NULL
                ELSE NOT queued.record -> 'conditions' @> '[{{"type": "QuotaReserved", "status": "True"}}]'
                 AND NOT queued.record -> 'conditions' @> '[{{"type": "Finished", "status": "True"}}]' END
)"""
_SUMS = f"{_WAITING} SELECT gpu_class, count(*), sum(units), min(requested_at) FROM waiting GROUP BY 1"
_COUNTS = f"""{_WAITING}
SELECT gpu_class, count(*), count(*) FILTER (WHERE team = ANY(%(teams)s)) FROM waiting GROUP BY 1"""
# Of two that came in the same second Kueue takes the one with the lower uid first.
_KEYS = "gpu_class, team, is_outside, lower, since, uid, run"
_AFTER = f"AND ({_KEYS}) > (%(k0)s, %(k1)s, %(k2)s, %(k3)s, %(k4)s, %(k5)s, %(k6)s)"
_PAGE = f"""{_WAITING.replace("{", "{{").replace("}", "}}")}, placed AS (
    SELECT waiting.*, row_number() OVER (
               PARTITION BY gpu_class, team ORDER BY is_outside, lower, since, uid, run) AS place
      FROM waiting
)
SELECT * FROM placed
 WHERE (%(class)s = '' OR gpu_class = %(class)s) AND (%(team)s = '' OR team = %(team)s) {{after}}
 ORDER BY {_KEYS} LIMIT %(limit)s"""


def _keys(one: _Raw) -> list[Any]:
    return [one.gpu_class, one.team, one.is_outside, one.lower, one.since, one.uid, one.run]


def _encode(last: _Raw) -> str:
    text = json.dumps(["queue", *_keys(last)], separators=(",", ":"), default=datetime.isoformat)
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _decode(cursor: str) -> list[Any]:
    try:
        padded = cursor.encode("ascii") + b"=" * (-len(cursor) % 4)
        order, gpu_class, team, is_outside, lower, since, uid, run = json.loads(base64.urlsafe_b64decode(padded))
        if order != "queue" or not all(isinstance(text, str) and "\0" not in text for text in (gpu_class, team, uid)):
            raise ValueError(order)
        numbers = [int(is_outside), int(lower), int(run)]
        if any(abs(number) >= 2**31 for number in numbers):
            raise ValueError(numbers)
        at = datetime.fromisoformat(since)
        if at.tzinfo is None:
            raise ValueError(since)
        return [gpu_class, team, numbers[0], numbers[1], at, uid, numbers[2]]
    except (ValueError, TypeError, OverflowError, binascii.Error, RecursionError) as error:
        text = "This cursor is not one of this list. Start again without it."
        raise refuse("bad_cursor", text, field="cursor") from error
