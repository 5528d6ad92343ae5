"""State fragments for streams: rendered once per view of a namespace, for all viewers. They do not depend on the user.

An edge without a request: these templates depend on their `state` alone.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Hashable, Mapping
from dataclasses import dataclass

from django.db import connection
from django.template.loader import get_template
from django.utils import timezone

from accounts.models import Event
from accounts.notices.queries import unread_counts
from catalog.models import GpuClass
from cluster.models import (
    AppliedObject,
    Cluster,
    MirrorJob,
    MirrorNode,
    MirrorObject,
    MirrorPod,
    MirrorWarning,
    MirrorWorkload,
)
from cluster.reads import queries as mirror
from cluster.reads.observed import AsOf
from desk.capacity.lending import use_by_other_teams
from desk.home import queries
from portal.core.hints import PERSON
from portal.core.sql import select, snapshot
from portal.live.types import Fragments
from tenants.announcements.queries import banner_rows_of
from tenants.announcements.shown import digest_of
from tenants.models import Grant, Namespace, Tenant
from tenants.requests import queries as request_queries
from workloads.core import workload_sql
from workloads.models import NotebookWatch, Run, Workload
from workloads.pages.shown import workload_state
from workloads.status import queries as workloads

# Begins the view of a quota request; no workload has such a name.
REQUEST, REQUEST_DIGITS = "request:", 18
# The most important parts come first.
HOME = ("desk/home/_state_summary.html", "desk/home/_state_attention.html", "desk/home/_state_holdings.html",
        "desk/home/_state_waiting.html", "desk/home/_state_running.html")  # fmt: skip
HOME_BESIDE = ("desk/home/_state_events.html", "desk/home/_state_month.html", "desk/home/_state_ends.html")
WORKLOAD = ("workloads/pages/_state_workload.html", "workloads/pages/_state_progress.html",
            "workloads/pages/_state_configuration.html")  # fmt: skip


def view_of(query: Mapping[str, str]) -> str:
    """What a stream's address asks for: a quota request (`?request=`), a workload (`?workload=`), or the home ("")."""
    request = query.get("request", "")[:REQUEST_DIGITS]
    return f"{REQUEST}{request}" if request else query.get("workload", "")[:40]


def fragments(channel: str, views: Collection[str]) -> Generator[tuple[str, Fragments | None], None, Hashable]:
    """Yields for each view (`view_of`) event name → HTML: `desk/home/_state_waiting.html` is the event `state_waiting`.
    None: the view does not exist. One snapshot for all; returns its version.
    """
    with snapshot():
        as_of = yield from _fragments(channel, views)
        return versions([channel], as_of)[channel]


def is_of_person(channel: str) -> bool:
    return channel.startswith(PERSON)


def people_fragments(channels: Collection[str]) -> Mapping[str, tuple[Fragments, Hashable]]:
    """Of channels of people: the number of unread notices, and a digest of the announcements, which the page then
    fetches; and the version, as in `versions`. Two queries for all.
    """
    template = get_template("components/page/_unread.html")
    return {channel: (_told(template.render({"unread_notices": one.unread}), one.announced), one)
            for channel, one in _people(channels).items()}  # fmt: skip


def _told(unread: str, announced: str) -> Fragments:
    return {"state_notices": unread.encode(), "state_announcements": (announced or "-").encode()}


def _fragments(channel: str, views: Collection[str]) -> Generator[tuple[str, Fragments | None], None, AsOf | None]:
    """The home reads every workload, so its rows also serve workload views. Returns the mirror's age as shown."""
    namespace = queries.namespace_by_name(channel)
    if namespace is None:
        yield from ((view, None) for view in views)
        return None
    asked = {view for view in views if view.startswith(REQUEST)}
    if asked:
        yield from _requests(namespace, asked)
    named = {view for view in views if view} - asked
    reading = queries.read_namespace(namespace) if "" in views else None
    rows = {row.workload.name: row for row in reading.rows} if reading else {}
    if missing := named - rows.keys():
        others = Workload.objects.filter(namespace=namespace, name__in=missing, deleted_at=None)
        rows |= {row.workload.name: row for row in workloads.workload_rows(workload_sql.with_related(others))}
    for view in sorted(named):
        yield view, _rendered(WORKLOAD, workload_state(rows[view])) if view in rows else None
    if reading is not None:
        home = queries.home_state(namespace, reading)
        yield "", _rendered(HOME, home)
        yield "", _rendered(HOME_BESIDE, home)
    return reading.as_of if reading else next((row.as_of for row in rows.values()), None)


def _requests(namespace: Namespace, views: Collection[str]) -> Generator[tuple[str, Fragments | None]]:
    """Only that the request changed: what its page shows depends on the user, so the page fetches it again."""
    numbers = {view: view.removeprefix(REQUEST) for view in views}
    pks = {view: int(number) for view, number in numbers.items() if number.isascii() and number.isdigit()}
    found = request_queries.request_versions(namespace.tenant_id, pks.values())
    for view in sorted(views):
        version = found.get(pks.get(view, 0))
        yield view, None if version is None else {"state_request": version.encode()}


def _rendered(templates: Collection[str], state: object) -> Fragments:
    return {_event(name): get_template(name).render({"state": state}).encode() for name in templates}


def _event(template: str) -> str:
    return template.rpartition("/_")[2].removesuffix(".html")


def versions(channels: Collection[str], as_of: AsOf | None = None) -> Mapping[str, Hashable]:
    """Returns namespace → a value that changes whenever its pages may change. It covers the namespace itself and what
    no hint about it reports: whether the mirror is current, staff's edits of classes, nodes of its pods, and what
    others borrow of its classes. Three statements, three per cluster, and up to three for borrowed units. Of a
    person it is what all its pages show: two statements for all people. Announcements change by the clock alone.

    `as_of`: the age of the mirror as read before; it changes while a page is rendered.
    """
    people = [channel for channel in channels if channel.startswith(PERSON)]
    persons: dict[str, Hashable] = {**_people(people)} if people else {}
    if not (teams := [channel for channel in channels if not channel.startswith(PERSON)]):
        return persons
    own, around = _own(teams), _around(teams, as_of)
    return persons | {channel: (own.get(channel), around.get(channel)) for channel in teams}


@dataclass(frozen=True)
class PersonState:
    """What all pages of a person show: the number of unread notices, and a digest of the announcements."""

    unread: int
    announced: str


def _people(channels: Collection[str]) -> dict[str, PersonState]:
    """Two queries."""
    people = {channel: int(channel.removeprefix(PERSON)) for channel in channels}
    unread, rows = unread_counts(people.values()), banner_rows_of(people.values())
    return {channel: PersonState(unread[pk], digest_of(rows.get(pk, ()))) for channel, pk in people.items()}


def _own(channels: Collection[str]) -> dict[str, Hashable]:
    with connection.cursor() as cursor:
        cursor.execute(_OWN, [list(channels)])
        return {row[0]: row[1:] for row in cursor.fetchall()}


def _around(channels: Collection[str], as_of: AsOf | None) -> dict[str, Hashable]:
    with connection.cursor() as cursor:
        cursor.execute(_AROUND, [list(channels)])
        found = cursor.fetchall()
    clusters = select(Cluster, "id = ANY(%s)", [list({row[1] for row in found})])
    of_cluster = {one.pk: _Around.of(one, as_of) for one in clusters}
    around: dict[str, Hashable] = {}
    for name, cluster_id, nodes, class_ids in found:
        seen = of_cluster[cluster_id]
        borrowed = tuple(seen.borrowed.get(pk, 0) for pk in class_ids or ())
        around[name] = (seen.is_known, seen.is_current, seen.classes, nodes, borrowed)
    return around


@dataclass(frozen=True)
class _Around:
    """Values of one cluster. `borrowed`: units by class id, of all teams."""

    is_known: bool
    is_current: bool
    classes: str
    borrowed: Mapping[int, int]

    @classmethod
    def of(cls, cluster: Cluster, as_of: AsOf | None) -> _Around:
        as_of = as_of or mirror.as_of(cluster.pk, *workloads.status_kinds(cluster))
        lending = select(GpuClass, "cluster_id = %s AND borrowing_limit > 0", [cluster.pk])
        borrowed = {pk: others.borrowed for pk, others in use_by_other_teams(cluster, lending, timezone.now()).items()}
        with connection.cursor() as cursor:
            cursor.execute(_CLASSES, [cluster.pk])
            (classes,) = cursor.fetchone()
        return cls(as_of.is_known, as_of.is_current, classes, borrowed)


_CLASSES = f"""
SELECT coalesce(md5(string_agg(one::text, '' ORDER BY one.id)), '') FROM {GpuClass._meta.db_table} one
 WHERE one.cluster_id = %s"""

_AROUND = f"""
SELECT namespace.name, namespace.cluster_id,
       (SELECT string_agg(DISTINCT concat_ws(' ', node.name, node.record ->> 'ready_since',
                                             node.record ->> 'ready_reason'), ', ')
          FROM {MirrorPod._meta.db_table} pod
          JOIN {MirrorNode._meta.db_table} node ON node.cluster_id = pod.cluster_id AND node.name = pod.node
         WHERE pod.cluster_id = namespace.cluster_id AND pod.namespace = namespace.name AND NOT node.ready),
       (SELECT array_agg(DISTINCT granted.gpu_class_id) FROM {Grant._meta.db_table} granted
         WHERE granted.tenant_id = namespace.tenant_id AND granted.period @> now())
  FROM {Namespace._meta.db_table} namespace
 WHERE namespace.name = ANY(%s)"""


def _seen(model: type, which: str = "true") -> str:
    table = model._meta.db_table  # type: ignore[attr-defined]
    return (
        f"(SELECT (count(*), max(resource_version))::text FROM {table} seen"
        f" WHERE seen.cluster_id = namespace.cluster_id AND seen.namespace = namespace.name"
        f" AND {which})"
    )


# Deleted mirror rows change the count; changed rows change the newest version. Only unfinished runs and workloads are
# read, however many there were: finished ones no longer change, the end of one lowers the count, and each start writes
# an Event.
_OWN = f"""
SELECT namespace.name, namespace.wanted, namespace.error_code,
       {_seen(MirrorJob)}, {_seen(MirrorPod)}, {_seen(MirrorWorkload)}, {_seen(MirrorWarning)},
       {_seen(MirrorObject, "seen.kind IN ('PersistentVolumeClaim', 'ResourceClaim', 'LimitRange')")},
       (SELECT max(queue.resource_version) FROM {MirrorObject._meta.db_table} queue
         WHERE queue.cluster_id = namespace.cluster_id AND queue.kind = 'ClusterQueue' AND queue.namespace = ''
           AND queue.name = namespace.name),
       (SELECT max(event.id) FROM {Event._meta.db_table} event WHERE event.tenant = tenant.slug),
       (SELECT (count(*), count(workload.delete_requested_at), count(nullif(workload.error_code, '')),
                max(workload.error_code))::text
          FROM {Workload._meta.db_table} workload
         WHERE workload.namespace_id = namespace.id AND workload.deleted_at IS NULL),
       (SELECT (count(*), max(run.id), count(run.admitted_at), count(run.put_back_at), count(run.started_at),
                count(run.ready_at), count(run.stop_requested_at), sum(run.preemptions), max(run.ends_at),
                count(watch.idle_since), max(watch.stops_at))::text
          FROM {Workload._meta.db_table} workload
          JOIN {Run._meta.db_table} run ON run.workload_id = workload.id AND run.ended_at IS NULL
          LEFT JOIN {NotebookWatch._meta.db_table} watch ON watch.run_id = run.id
         WHERE workload.namespace_id = namespace.id AND workload.deleted_at IS NULL),
       (SELECT (count(*), max(sent.sent_at))::text FROM {AppliedObject._meta.db_table} sent
         WHERE sent.cluster_id = namespace.cluster_id AND sent.kind IN ('Job', 'Secret')
           AND sent.namespace = namespace.name),
       (SELECT (count(*), sum(granted.units), count(*) FILTER (WHERE granted.period @> now()),
                count(*) FILTER (WHERE upper(granted.period) > now()),
                sum(extract(epoch FROM upper(granted.period))))::text
          FROM {Grant._meta.db_table} granted
         WHERE granted.tenant_id = tenant.id AND upper(granted.period) + granted.grace > now())
  FROM {Namespace._meta.db_table} namespace JOIN {Tenant._meta.db_table} tenant ON tenant.id = namespace.tenant_id
 WHERE namespace.name = ANY(%s)"""
