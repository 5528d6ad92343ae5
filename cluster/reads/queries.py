"""Reads of the mirror: they return frozen values (`observed.py`), never rows. A kind that is not listed yet is
*unknown*.

Call `is_known` before you conclude anything from absence: no mirror means "unknown", never "stopped" or "0 free".
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple, TypeVar

from django.conf import settings
from django.db import connection
from django.utils import timezone

from cluster.manifests.node_removal.cordons import cordon_of
from cluster.mirror.silence import SILENT_AFTER
from cluster.models import (
    AppliedObject,
    Cluster,
    MirrorEpoch,
    MirrorJob,
    MirrorKind,
    MirrorLease,
    MirrorNode,
    MirrorObject,
    MirrorPod,
    MirrorRow,
    MirrorWarning,
    MirrorWorkload,
    PodRemoval,
)
from cluster.reads import observed
from cluster.reads.observed import AsOf, GenericObject, Job, KueueWorkload, Node, Pod, RemovedPod, WarningEvent
from portal.core.errors import refuse
from portal.core.sql import columns, instance, select

Row = TypeVar("Row", bound=MirrorRow)

# The watcher beats every 5 s; a watch delivers something at least every 30 s and is reopened after 45 s of silence.
BEAT_LIMIT_S = 20
HEARD_LIMIT_S = 75


def is_known(cluster_id: int, *kinds: str) -> bool:
    """True if all rows of these kinds are there: they were listed completely since the mirror was last emptied."""
    return set(kinds) <= known_kinds(cluster_id)


def known_kinds(cluster_id: int) -> set[str]:
    with connection.cursor() as cursor:
        cursor.execute(_KNOWN, [cluster_id])
        return {kind for (kind,) in cursor.fetchall()}


# Raw SQL text, like the functions below: workers run it at every reconcile of a run.
_KNOWN = f"""
SELECT kind.kind FROM {MirrorKind._meta.db_table} kind JOIN {MirrorEpoch._meta.db_table} epoch USING (cluster_id)
 WHERE cluster_id = %s AND kind.listed_at IS NOT NULL AND kind.epoch = epoch.epoch"""


class _Heard(NamedTuple):
    kind: str
    heard_at: datetime
    problem: str
    beat_at: datetime
    is_listed: bool
    silent: str | None


def as_of(cluster_id: int, *kinds: str) -> AsOf:
    """Returns how current the mirror is for these kinds (default: all followed kinds). One query."""
    with connection.cursor() as cursor:
        cursor.execute(_HEARD, [SILENT_AFTER.total_seconds(), cluster_id, list(kinds), list(kinds)])
        rows = [_Heard(*row) for row in cursor.fetchall()]
    is_complete = bool(rows) and set(kinds) <= {row.kind for row in rows}
    if not is_complete or not all(row.is_listed for row in rows):
        problem = next((row.problem for row in rows if row.problem), "")
        return AsOf(None, False, problem or "The cluster has not been listed yet.")
    now, beat_at = timezone.now(), rows[0].beat_at
    silent = {name: datetime.fromisoformat(at) for name, at in json.loads(rows[0].silent or "{}").items()}
    if now - beat_at > timedelta(seconds=BEAT_LIMIT_S):
        return AsOf(min(row.heard_at for row in rows), False, "The watcher is not running.", silent)
    behind = [row for row in rows if row.problem or now - row.heard_at > timedelta(seconds=HEARD_LIMIT_S)]
    if behind:
        oldest = min(behind, key=lambda row: row.heard_at)
        problem = oldest.problem or f"No cluster updates for more than {HEARD_LIMIT_S} s."
        return AsOf(oldest.heard_at, False, problem, silent)
    return AsOf(beat_at, True, silent=silent)


def components(cluster_id: int) -> dict[str, datetime]:
    """Returns when each component with a Lease last renewed it."""
    return dict(MirrorLease.objects.filter(cluster_id=cluster_id).values_list("component", "renewed_at"))


def kind_versions(cluster_id: int, *kinds: str) -> dict[str, str | None]:
    """Returns kind → resource version of its rows: a list at exactly that version returns the same objects. None: not
    listed completely yet. It never decreases while the cluster is the same. Two queries.
    """
    known = known_kinds(cluster_id)
    rows = MirrorKind.objects.filter(cluster_id=cluster_id, kind__in=kinds).values_list("kind", "resource_version")
    return dict.fromkeys(kinds) | {kind: version for kind, version in rows if kind in known}


# Raw SQL text: every page and every stream fragment runs this.
_HEARD = f"""
SELECT kind.kind, kind.heard_at, kind.problem, epoch.beat_at, kind.listed_at IS NOT NULL AND kind.epoch = epoch.epoch,
       (SELECT json_object_agg(component, renewed_at)::text FROM {MirrorLease._meta.db_table} lease
         WHERE lease.cluster_id = kind.cluster_id AND read_at - renewed_at > make_interval(secs => %s))
  FROM {MirrorKind._meta.db_table} kind JOIN {MirrorEpoch._meta.db_table} epoch USING (cluster_id)
 WHERE cluster_id = %s AND (%s::text[] = '{{}}' OR kind.kind = ANY(%s))"""


# ---- objects of one kind -----------------------------------------------------------------------------------------


def nodes(cluster_id: int) -> list[Node]:
    """All nodes by name."""
    return [node_of(row) for row in MirrorNode.objects.filter(cluster_id=cluster_id).order_by("name")]


def cordoned_nodes(cluster_id: int) -> list[Node]:
    return [node_of(row) for row in MirrorNode.objects.filter(cluster_id=cluster_id, schedulable=False)]


def node_uids(cluster_id: int, names: Collection[str]) -> dict[str, str]:
    """By name; a node that is gone is missing."""
    return dict(MirrorNode.objects.filter(cluster_id=cluster_id, name__in=names).values_list("name", "uid"))


def node_named(cluster_id: int, name: str) -> Node | None:
    row = MirrorNode.objects.filter(cluster_id=cluster_id, name=name).first()
    return node_of(row) if row else None


def pods(cluster_id: int, *, owner: str = "", namespace: str = "", node: str = "", run: str = "") -> list[Pod]:
    """Returns pods, oldest first; without arguments every pod of the cluster, including pods that are not ours."""
    return [_pod(row) for row in _rows(MirrorPod, cluster_id, owner=owner, namespace=namespace, node=node, run=run)]


def removed_pods(cluster_id: int, *, owner: str, namespace: str, run: str) -> list[RemovedPod]:
    """Returns the pods that the cluster removed within the last day, in the order in which they went."""
    where = "cluster_id = %s AND owner = %s AND namespace = %s AND run = %s ORDER BY removed_at, uid"
    return [_removed_pod(row) for row in select(PodRemoval, where, [cluster_id, owner, namespace, run])]


def jobs(cluster_id: int, *, owner: str = "", namespace: str = "") -> list[Job]:
    return [_job(row) for row in _rows(MirrorJob, cluster_id, owner=owner, namespace=namespace)]


def jobs_owned(cluster_id: int, namespace: str, owners: Collection[str]) -> list[Job]:
    rows = _rows(MirrorJob, cluster_id, "owner = ANY(%s)", values=[list(owners)], namespace=namespace)
    return [_job(row) for row in rows]


def pods_owned(cluster_id: int, namespace: str, owners: Collection[str]) -> list[Pod]:
    """Oldest first."""
    rows = _rows(MirrorPod, cluster_id, "owner = ANY(%s)", values=[list(owners)], namespace=namespace)
    return [_pod(row) for row in rows]


def workloads(cluster_id: int, *, owner: str = "", namespace: str = "", job_uid: str = "") -> list[KueueWorkload]:
    return [
        _workload(row) for row in _rows(MirrorWorkload, cluster_id, owner=owner, namespace=namespace, job_uid=job_uid)
    ]


def jobs_of(cluster_id: int, uids: Collection[str]) -> list[Job]:
    return [_job(row) for row in MirrorJob.objects.filter(cluster_id=cluster_id, uid__in=list(uids))]


def workloads_of(cluster_id: int, job_uids: Collection[str]) -> list[KueueWorkload]:
    """Returns the Workloads of these Jobs, in any namespace."""
    return [_workload(row) for row in MirrorWorkload.objects.filter(cluster_id=cluster_id, job_uid__in=list(job_uids))]


def workloads_holding(cluster_id: int, namespace: str, job_uids: Collection[str]) -> list[KueueWorkload]:
    """Returns the Workloads of these Jobs, and all others with quota there. Other queued Workloads are not read."""
    rows = _rows(MirrorWorkload, cluster_id, _HOLDING, values=[list(job_uids)], namespace=namespace)
    return [_workload(row) for row in rows]


_HOLDING = """(job_uid = ANY(%s)
    OR record -> 'conditions' @> '[{"type": "QuotaReserved", "status": "True"}]')"""


def objects(cluster_id: int, *, kind: str = "", owner: str = "", namespace: str = "") -> list[GenericObject]:
    return [_object(row) for row in _rows(MirrorObject, cluster_id, kind=kind, owner=owner, namespace=namespace)]


def object_named(cluster_id: int, kind: str, name: str, *, namespace: str = "") -> GenericObject | None:
    found = select(
        MirrorObject,
        "cluster_id = %s AND kind = %s AND namespace = %s AND name = %s LIMIT 1",
        [cluster_id, kind, namespace, name],
    )
    return _object(found[0]) if found else None


def namespace_and_queue(cluster_id: int, name: str) -> dict[str, GenericObject]:
    """Returns by kind the Namespace and the ClusterQueue of this name. One query."""
    where = "cluster_id = %s AND kind IN ('Namespace', 'ClusterQueue') AND namespace = '' AND name = %s"
    return {row.kind: _object(row) for row in select(MirrorObject, where, [cluster_id, name])}


def limiting_objects(cluster_id: int, namespace: str) -> list[GenericObject]:
    """The Namespace, the ClusterQueue of its name, its LocalQueues and its ResourceQuotas. One query."""
    where = """cluster_id = %s AND (kind IN ('LocalQueue', 'ResourceQuota') AND namespace = %s
        OR kind IN ('Namespace', 'ClusterQueue') AND namespace = '' AND name = %s)"""
    return [_object(row) for row in select(MirrorObject, where, [cluster_id, namespace, namespace])]


def warnings(cluster_id: int, object_uids: Collection[str]) -> list[WarningEvent]:
    """The newest text per object and reason, latest first; at most 1,000."""
    with connection.cursor() as cursor:
        cursor.execute(_WARNINGS, {"cluster_id": cluster_id, "uids": list(object_uids)})
        return [_warning(instance(MirrorWarning, iter(row))) for row in cursor.fetchall()]


def gpu_errors_of_nodes(cluster_id: int, nodes: Collection[str]) -> dict[str, list[WarningEvent]]:
    """Node → Warning events about it that name an XID, latest first. No other events about nodes are mirrored."""
    found: dict[str, list[WarningEvent]] = {}
    where = "cluster_id = %s AND object_kind = 'Node' AND object_name = ANY(%s) ORDER BY last_at DESC"
    for row in select(MirrorWarning, where, [cluster_id, sorted(nodes)]) if nodes else ():
        found.setdefault(row.object_name, []).append(_warning(row))
    return found


# From a reason of an object to its next one by the index: DISTINCT ON would sort all events, which repeat few reasons.
_WARNINGS = f"""
WITH RECURSIVE found(of_uid, reason) AS (
    SELECT of_uid, (SELECT min(reason) FROM {MirrorWarning._meta.db_table} WHERE cluster_id = %(cluster_id)s
                       AND object_uid = of_uid) FROM unnest(%(uids)s::text[]) of_uid
    UNION ALL
    SELECT of_uid, (SELECT min(more.reason) FROM {MirrorWarning._meta.db_table} more WHERE cluster_id = %(cluster_id)s
                       AND object_uid = of_uid AND more.reason > found.reason) FROM found WHERE reason IS NOT NULL
)
SELECT {columns(MirrorWarning, "newest")} FROM found CROSS JOIN LATERAL (
    SELECT * FROM {MirrorWarning._meta.db_table} one WHERE cluster_id = %(cluster_id)s AND object_uid = of_uid
       AND one.reason = found.reason ORDER BY last_at DESC LIMIT 1) newest
 ORDER BY last_at DESC LIMIT 1000"""


# ---- queries over several kinds ----------------------------------------------------------------------------------


def requests_by_node(
    cluster_id: int, nodes: Collection[str], *, namespaces: Collection[str] | None = None
) -> dict[str, dict[str, int]]:
    """Returns node → resource → units requested by unfinished pods that are bound to it: all pods, or those of some
    namespaces. One query.
    """
    statement = f"""
        SELECT pod.node, request.key, sum(request.value::bigint)
          FROM {MirrorPod._meta.db_table} pod, jsonb_each_text(pod.record -> 'requests') request
         WHERE pod.cluster_id = %s AND pod.node = ANY(%s) AND pod.phase NOT IN ('Succeeded', 'Failed')
           AND (%s::text[] IS NULL OR pod.namespace = ANY(%s))
         GROUP BY pod.node, request.key"""
    found: dict[str, dict[str, int]] = {}
    with connection.cursor() as cursor:
        of_namespaces = None if namespaces is None else list(namespaces)
        cursor.execute(statement, [cluster_id, list(nodes), of_namespaces, of_namespaces])
        for node, resource, units in cursor.fetchall():
            found.setdefault(node, {})[resource] = int(units)
    return found


def devices_in_use(cluster_id: int) -> dict[tuple[str, str], set[str]]:
    """Returns (driver, pool) → names of devices that any ResourceClaim holds."""
    found: dict[tuple[str, str], set[str]] = {}
    for claim in objects(cluster_id, kind="ResourceClaim"):
        for device in claim.record["devices"]:
            found.setdefault((device["driver"], device["pool"]), set()).add(device["device"])
    return found


def differences(cluster_id: int, *, owner: str = "") -> list[AppliedObject]:
    """Returns the drift of objects that is not repaired yet."""
    rows = AppliedObject.objects.filter(cluster_id=cluster_id).exclude(difference={})
    return list(rows.filter(owner=owner) if owner else rows)


def owners_seen(cluster_id: int) -> set[str]:
    """Returns every owner label in the cluster: an object whose label has no row is an orphan."""
    tables = (MirrorPod._meta.db_table, MirrorJob._meta.db_table, MirrorObject._meta.db_table)
    owners = " UNION ".join(f"SELECT owner FROM {table} WHERE cluster_id = %s AND owner <> ''" for table in tables)
    with connection.cursor() as cursor:
        cursor.execute(owners, [cluster_id] * len(tables))
        return {owner for (owner,) in cursor.fetchall()}


# ---- rows to values ----------------------------------------------------------------------------------------------


def _rows(model: type[Row], cluster_id: int, *more: str, values: Sequence[Any] = (), **filters: str) -> Iterable[Row]:
    """Returns rows in order of creation. Raw SQL text: every page and every stream fragment runs this several times.

    `filters`: empty ones add no condition; `more`: conditions with their `values`.
    """
    asked = {name: value for name, value in filters.items() if value}
    where = " AND ".join(["cluster_id = %s", *(f"{name} = %s" for name in asked), *more])
    return select(model, f"{where} ORDER BY created_at, name", [cluster_id, *asked.values(), *values])


def node_of(row: MirrorNode) -> Node:
    record = row.record
    return Node(
        name=row.name,
        uid=row.uid,
        created_at=row.created_at,
        schedulable=row.schedulable,
        ready=row.ready,
        ready_since=observed.parse_time(record["ready_since"]),
        ready_reason=record["ready_reason"],
        ready_message=record["ready_message"],
        labels=record["labels"],
        taints=tuple(observed.Taint(**taint) for taint in record["taints"]),
        capacity=record["capacity"],
        allocatable=record["allocatable"],
        pressure=tuple(record["pressure"]),
        kubelet=record["kubelet"],
        writers={
            label: observed.LabelWriter(one["manager"], observed.parse_time(one["at"]))
            for label, one in record["writers"].items()
        },
        cordon=cordon_of(schedulable=row.schedulable, record=record),
    )


def _identity(row: Any) -> dict[str, Any]:
    names = ("namespace", "name", "uid", "owner", "created_at", "deleting_since")
    return {name: getattr(row, name) for name in names}


def _pod(row: MirrorPod) -> Pod:
    columns: dict[str, Any] = {"phase": row.phase, "node": row.node, "run": row.run, "gpu_class": row.gpu_class}
    record = row.record
    if not row.owner:
        return Pod(**_identity(row), **columns, requests=record["requests"])
    typed: dict[str, Any] = {
        "conditions": observed.conditions(record),
        "containers": observed.containers(record["containers"]),
        "init_containers": observed.containers(record["init_containers"]),
        "gates": tuple(record["gates"]),
        "claims": tuple(record["claims"]),
        "started_at": observed.parse_time(record["started_at"]),
    }
    return Pod(**_identity(row), **columns, **{**record, **typed})


def _removed_pod(row: PodRemoval) -> RemovedPod:
    target = observed.Condition("DisruptionTarget", "True", row.disruption, row.disruption_message, row.disrupted_at)
    return RemovedPod(row.uid, row.node, row.phase, row.reason, row.message, target, row.ran_since)


def _job(row: MirrorJob) -> Job:
    record = row.record
    typed: dict[str, Any] = {
        "conditions": observed.conditions(record),
        "started_at": observed.parse_time(record["started_at"]),
        "completed_at": observed.parse_time(record["completed_at"]),
    }
    return Job(**_identity(row), run=row.run, **{**record, **typed})


def _workload(row: MirrorWorkload) -> KueueWorkload:
    record = row.record
    typed: dict[str, Any] = {
        "conditions": observed.conditions(record),
        "requeue_at": observed.parse_time(record["requeue_at"]),
        "inactive_since": observed.parse_time(record.get("inactive_since")),
    }
    return KueueWorkload(**_identity(row), queue=row.queue, job_uid=row.job_uid, **{**record, **typed})


def _object(row: MirrorObject) -> GenericObject:
    return GenericObject(kind=row.kind, **_identity(row), record=row.record)


def _warning(row: MirrorWarning) -> WarningEvent:
    names = ("namespace", "object_kind", "object_name", "object_uid", "reason", "message")
    return WarningEvent(
        **{name: getattr(row, name) for name in names},
        count=row.count,
        first_at=row.first_at,
        last_at=row.last_at,
        source=row.source,
    )


def current_cluster() -> Cluster:
    """Returns the one cluster of this installation. Raises Refused: no_cluster (503)."""
    found = Cluster.objects.filter(name=settings.CLUSTER_NAME).first()
    if found is None:
        raise refuse("no_cluster", "No cluster is set up yet. Operators: run `manage.py catalog settle`.", status=503)
    return found
