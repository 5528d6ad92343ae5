"""State fragments for streams: rendered once per view of a namespace, for all who watch it. They know no actor.

An edge without a request: what these templates show depends on their `state` alone.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Mapping

from django.db import connection
from django.template.loader import get_template
from django.utils import timezone

from accounts.models import Event
from catalog.models import GpuClass
from cluster import queries as mirror
from cluster.models import AppliedObject, Cluster, MirrorJob, MirrorObject, MirrorPod, MirrorWarning, MirrorWorkload
from desk import queries
from desk.queries.lending import others_of
from portal.live import Fragments
from tenants.models import Grant, Namespace, Tenant
from workloads import queries as workloads
from workloads.models import NotebookWatch, Run, Workload
from workloads.shown import workload_state

HOME = ("desk/_state_summary.html", "desk/_state_attention.html", "desk/_state_holdings.html",
        "desk/_state_waiting.html", "desk/_state_running.html", "desk/_state_events.html",
        "desk/_state_month.html", "desk/_state_ends.html")  # fmt: skip
WORKLOAD = ("workloads/_state_workload.html", "workloads/_state_progress.html")


def fragments(channel: str, views: Collection[str]) -> Iterator[tuple[str, Fragments | None]]:
    """Of each view, "" or a workload's name, event name → HTML: `desk/_state_waiting.html` is the event
    `state_waiting`. None: there is no such thing. The home reads every workload, so that it serves the views of one.
    """
    namespace = queries.namespace_named(channel)
    if namespace is None:
        yield from ((view, None) for view in views)
        return
    named = {view for view in views if view}
    reading = queries.read(namespace) if len(named) < len(views) else None
    rows = {row.workload.name: row for row in reading.rows} if reading else {}
    if missing := named - rows.keys():
        others = Workload.objects.filter(namespace=namespace, name__in=missing, deleted_at=None)
        rows |= {row.workload.name: row for row in workloads.rows(workloads.with_names(others))}
    for view in sorted(named):
        yield view, _rendered(WORKLOAD, workload_state(rows[view])) if view in rows else None
    if reading is not None:
        yield "", _rendered(HOME, queries.home(namespace, reading))


def _rendered(templates: Collection[str], state: object) -> Fragments:
    return {_event(name): get_template(name).render({"state": state}).encode() for name in templates}


def _event(template: str) -> str:
    return template.rpartition("/_")[2].removesuffix(".html")


def versions(channels: Collection[str]) -> Mapping[str, Hashable]:
    """Namespace → something that differs whenever its pages may. One query, one for the age of the mirror, and up to
    three for what is borrowed of classes that may be: other teams do that, and no hint about this one tells it.
    """
    with connection.cursor() as cursor:
        cursor.execute(_VERSIONS, [list(channels)])
        found = {row[0]: row[1:] for row in cursor.fetchall()}
    clusters = Cluster.objects.in_bulk({row[0] for row in found.values()})
    current = {pk: mirror.as_of(pk, *workloads.kinds_shown(one)).is_current for pk, one in clusters.items()}
    borrowed = {pk: _borrowed(one) for pk, one in clusters.items()}
    return {
        name: (*row[:-1], current[row[0]], tuple(borrowed[row[0]].get(pk, 0) for pk in row[-1] or ()))
        for name, row in found.items()
    }


def _borrowed(cluster: Cluster) -> dict[int, int]:
    """Units by class id, of all teams."""
    classes = list(GpuClass.objects.filter(cluster=cluster, borrowing_limit__gt=0))
    return {pk: others.borrowed for pk, others in others_of(cluster, classes, timezone.now()).items()}


def _seen(model: type, which: str = "true") -> str:
    table = model._meta.db_table  # type: ignore[attr-defined]
    return (
        f"(SELECT (count(*), max(resource_version))::text FROM {table} seen"
        f" WHERE seen.cluster_id = namespace.cluster_id AND seen.namespace = namespace.name"
        f" AND {which})"
    )


# Deleted mirror rows show in the count; rows that changed show in the newest version.
_VERSIONS = f"""
SELECT namespace.name, namespace.cluster_id, namespace.wanted, namespace.error_code,
       {_seen(MirrorJob)}, {_seen(MirrorPod)}, {_seen(MirrorWorkload)}, {_seen(MirrorWarning)},
       {_seen(MirrorObject, "seen.kind = 'PersistentVolumeClaim'")},
       (SELECT max(event.id) FROM {Event._meta.db_table} event WHERE event.tenant = tenant.slug),
       (SELECT (count(*), count(run.admitted_at), count(run.started_at), count(run.ready_at), count(run.ended_at),
                count(run.stop_requested_at), sum(run.preemptions))::text
          FROM {Run._meta.db_table} run JOIN {Workload._meta.db_table} workload ON workload.id = run.workload_id
         WHERE workload.namespace_id = namespace.id),
       (SELECT (count(sent.id), max(sent.sent_at))::text FROM {AppliedObject._meta.db_table} sent
         WHERE sent.cluster_id = namespace.cluster_id AND sent.namespace = namespace.name),
       (SELECT (count(nullif(workload.error_code, '')), max(workload.error_code), count(workload.deleted_at))::text
          FROM {Workload._meta.db_table} workload WHERE workload.namespace_id = namespace.id),
       (SELECT (sum(granted.units), max(upper(granted.period)))::text FROM {Grant._meta.db_table} granted
         WHERE granted.tenant_id = tenant.id AND granted.period @> now()),
       (SELECT (count(watch.idle_since), max(watch.stops_at), max(run.ends_at))::text
          FROM {Run._meta.db_table} run JOIN {Workload._meta.db_table} workload ON workload.id = run.workload_id
          LEFT JOIN {NotebookWatch._meta.db_table} watch ON watch.run_id = run.id
         WHERE workload.namespace_id = namespace.id AND run.ended_at IS NULL),
       {_seen(MirrorObject, "seen.kind = 'ResourceClaim'")},
       (SELECT array_agg(DISTINCT granted.gpu_class_id) FROM {Grant._meta.db_table} granted
         WHERE granted.tenant_id = tenant.id AND granted.period @> now())
  FROM {Namespace._meta.db_table} namespace JOIN {Tenant._meta.db_table} tenant ON tenant.id = namespace.tenant_id
 WHERE namespace.name = ANY(%s)"""
