"""The SQL of the mirror: a whole batch in one statement per table; an older version never replaces a newer one."""

from __future__ import annotations

import functools
import json
from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from typing import Any

from django.db import connection
from django.db.models import Model

from cluster.mirror.records.kinds import KINDS, MirroredKind
from cluster.mirror.records.types import ObservedObject
from cluster.models import (
    AppliedObject,
    Cluster,
    MirrorEpoch,
    MirrorJob,
    MirrorKind,
    MirrorLease,
    MirrorNews,
    MirrorNode,
    MirrorObject,
    MirrorPod,
    MirrorWarning,
    MirrorWorkload,
)

MODELS: dict[str, type[Model]] = {
    "node": MirrorNode,
    "pod": MirrorPod,
    "job": MirrorJob,
    "workload": MirrorWorkload,
    "warning": MirrorWarning,
    "object": MirrorObject,
}
# Delivered in one transaction, which locks the rows that it wakes.
NEWS_AT_ONCE = 2000
KEYS = {"node": ("cluster_id", "name"), "object": ("cluster_id", "kind", "namespace", "name")}


def row(cluster_id: int, seen: ObservedObject) -> dict[str, Any]:
    """One mirror row as JSON values."""
    kind = KINDS[seen.kind]
    identity = {
        "cluster_id": cluster_id,
        "namespace": seen.namespace,
        "name": seen.name,
        "uid": seen.uid,
        "resource_version": seen.resource_version,
    }
    if kind.table == "warning":
        return identity | seen.columns
    shared = {
        "owner": seen.owner,
        "created_at": seen.created_at,
        "deleting_since": seen.deleting_since,
        "record": seen.record,
    }
    return identity | shared | seen.columns | ({"kind": kind.name} if kind.table == "object" else {})


def upsert(name: str, rows: Sequence[dict[str, Any]]) -> set[str]:
    """Insert or replace by the table's natural key, unless the row in place is newer. Returns owners who have lost an
    object: the row in place named them, and the new one does not.
    """
    return {owner for (owner,) in _execute(_upsert(name), [json.dumps(rows)])}


@functools.cache
def _upsert(name: str) -> str:
    model, key = MODELS[name], KEYS.get(name, ("cluster_id", "namespace", "name"))
    table = model._meta.db_table
    columns = {
        str(field.column): field.db_type(connection) for field in model._meta.concrete_fields if field.column != "id"
    }
    names = ", ".join(columns)
    typed = ", ".join(f"{name} {sort}" for name, sort in columns.items())
    changed = ", ".join(f"{name} = excluded.{name}" for name in columns if name not in key)
    write = f"""
        INSERT INTO {table} ({names}) SELECT {names} FROM new
        ON CONFLICT ({", ".join(key)}) DO UPDATE SET {changed}
         WHERE {table}.resource_version <= excluded.resource_version"""
    new = f"new AS MATERIALIZED (SELECT {names} FROM jsonb_to_recordset(%s::jsonb) AS rows ({typed}))"
    if "owner" not in columns:
        return f"WITH {new} {write}"
    # The whole statement reads the rows as they were before it.
    return f"""
        WITH {new}, written AS ({write})
        SELECT DISTINCT old.owner FROM {table} old JOIN new USING ({", ".join(key)})
         WHERE old.owner NOT IN ('', new.owner) AND old.resource_version <= new.resource_version"""


def delete(cluster_id: int, kind: MirroredKind, uids: Collection[str]) -> list[tuple[str, str, str, str]]:
    """(uid, namespace, name, owner) of the rows that were there."""
    table = MODELS[kind.table]._meta.db_table
    owner = "''" if kind.table == "warning" else "owner"
    statement = f"DELETE FROM {table} WHERE cluster_id = %s AND uid = ANY(%s) RETURNING uid, namespace, name, {owner}"
    return _execute(statement, [cluster_id, list(uids)])


def owners_on(cluster_id: int, nodes: Collection[str]) -> set[str]:
    """Owners of pods on these nodes."""
    rows = MirrorPod.objects.filter(cluster_id=cluster_id, node__in=nodes).exclude(owner="")
    return set(rows.values_list("owner", flat=True))


def row_versions(cluster_id: int, kind: MirroredKind, namespace: str = "") -> dict[str, int]:
    """uid → resource version of every row of the kind, or of those in one namespace."""
    model: type[Model] = MODELS[kind.table]
    rows = model._base_manager.filter(cluster_id=cluster_id, **({"namespace": namespace} if namespace else {}))
    if kind.table == "object":
        rows = rows.filter(kind=kind.name)
    return dict(rows.values_list("uid", "resource_version").iterator())


def baselines(uids: Collection[str]) -> dict[str, dict[str, Any] | None]:
    """uid → how many fields were ours when the object was last seen (see `cluster/client/managed_fields.py`)."""
    return dict(MirrorObject.objects.filter(uid__in=list(uids)).values_list("uid", "record__own"))


def job_owners(cluster_id: int) -> dict[str, str]:
    """Job uid → owner."""
    rows = MirrorJob.objects.filter(cluster_id=cluster_id).exclude(owner="")
    return dict(rows.values_list("uid", "owner").iterator())


def owners_of_jobs(cluster_id: int, *, is_absent: bool = False) -> set[str]:
    """Owners of Jobs that were sent; `is_absent`: of those that the mirror does not show."""
    statement = f"""
        SELECT sent.owner FROM {AppliedObject._meta.db_table} sent
         WHERE sent.cluster_id = %s AND sent.kind = 'Job' AND sent.uid <> ''
           AND NOT (%s AND EXISTS (SELECT FROM {MirrorJob._meta.db_table} seen
                                    WHERE seen.cluster_id = sent.cluster_id AND seen.uid = sent.uid))"""
    return {owner for (owner,) in _execute(statement, [cluster_id, is_absent])}


def adopt_workloads(cluster_id: int, owners: dict[str, str]) -> list[tuple[str, str]]:
    """Sets the owner of Workloads that were seen before their Jobs. `owners`: Job uid → owner. Returns (namespace,
    owner) of each.
    """
    statement = f"""
        UPDATE {MirrorWorkload._meta.db_table} workload SET owner = job.owner
          FROM jsonb_each_text(%s::jsonb) AS job (uid, owner)
         WHERE workload.cluster_id = %s AND workload.job_uid = job.uid AND workload.owner = ''
        RETURNING workload.namespace, workload.owner"""
    return _execute(statement, [json.dumps(owners), cluster_id])


def forget_namespaces(cluster_id: int, names: Collection[str]) -> set[str]:
    """Deletes the rows of namespaces that turned out not to be ours. Returns the owners of Jobs there."""
    jobs = MirrorJob.objects.filter(cluster_id=cluster_id, namespace__in=list(names)).exclude(owner="")
    owners = set(jobs.values_list("owner", flat=True))
    models: tuple[type[Model], ...] = (MirrorJob, MirrorWorkload)
    for model in models:
        model._base_manager.filter(cluster_id=cluster_id, namespace__in=list(names)).delete()
    of_pods = MirrorWarning.objects.exclude(object_kind="Node")
    of_pods.filter(cluster_id=cluster_id, namespace__in=list(names)).delete()
    kinds = [kind.name for kind in KINDS.values() if kind.table == "object" and not kind.is_everywhere]
    MirrorObject.objects.filter(cluster_id=cluster_id, namespace__in=list(names), kind__in=kinds).delete()
    return owners


def forget_everything(cluster_id: int) -> None:
    models: tuple[type[Model], ...] = (*MODELS.values(), MirrorKind, MirrorNews, MirrorLease)
    for model in models:
        model._base_manager.filter(cluster_id=cluster_id).delete()


def copy_site(cluster_id: int) -> list[str]:
    """Keeps the site profile of the mirror at the cluster's own row. Returns the owners of all namespaces if it has
    changed: their objects are built by it.
    """
    statement = f"""
        UPDATE {Cluster._meta.db_table} cluster SET site = found.data
          FROM (SELECT coalesce((SELECT record -> 'data' FROM {MirrorObject._meta.db_table}
                                  WHERE cluster_id = %s AND kind = 'ConfigMap'), '{{}}'::jsonb) AS data) found
         WHERE cluster.id = %s AND cluster.site IS DISTINCT FROM found.data
        RETURNING cluster.id"""
    if not _execute(statement, [cluster_id, cluster_id]):
        return []
    rows = AppliedObject.objects.filter(cluster_id=cluster_id, kind="Namespace")
    return list(rows.values_list("owner", flat=True))


def take_news(cluster_id: int) -> list[tuple[str, str, dict[str, Any]]]:
    """Removes and returns pending news as (owner, uid, difference), at most NEWS_AT_ONCE, oldest first."""
    table = MirrorNews._meta.db_table
    statement = f"""
        DELETE FROM {table} WHERE id = ANY(ARRAY(SELECT id FROM {table} WHERE cluster_id = %s ORDER BY id LIMIT %s))
        RETURNING owner, object_uid, difference"""
    found = _execute(statement, [cluster_id, NEWS_AT_ONCE])
    return [(owner, uid, json.loads(text) if isinstance(text, str) else text) for owner, uid, text in found]


def touch(cluster_id: int, epoch: int, *, heard: bool) -> bool:
    """Updates the heartbeat. Returns whether the tables have this epoch. Raw SQL: it runs before every batch."""
    statement = f"""
        UPDATE {MirrorEpoch._meta.db_table}
           SET beat_at = statement_timestamp(), heard_at = CASE WHEN %s THEN statement_timestamp() ELSE heard_at END
         WHERE cluster_id = %s AND epoch = %s RETURNING epoch"""
    return bool(_execute(statement, [heard, cluster_id, epoch]))


def mark_leases(cluster_id: int, renewals: Mapping[str, str], silent_after: timedelta) -> frozenset[str]:
    """Stores when each component renewed its Lease; "" removes it. Returns the components that are silent. A renewal
    that is seen for the first time counts from the component's own time of it, but not from a later time than now.
    """
    table = MirrorLease._meta.db_table
    absent = [component for component, renewal in renewals.items() if not renewal]
    found = {component: renewal for component, renewal in renewals.items() if renewal}
    if absent:
        MirrorLease.objects.filter(cluster_id=cluster_id, component__in=absent).delete()
    if found:
        statement = f"""
            INSERT INTO {table} AS old (cluster_id, component, renewal, renewed_at, read_at)
            SELECT %s, key, value, least(value::timestamptz, statement_timestamp()), statement_timestamp()
              FROM jsonb_each_text(%s::jsonb)
            ON CONFLICT (cluster_id, component) DO UPDATE SET
                   renewal = excluded.renewal,
                   read_at = excluded.read_at,
                   renewed_at = CASE WHEN old.renewal = excluded.renewal THEN old.renewed_at ELSE excluded.read_at END
            RETURNING 1"""
        _execute(statement, [cluster_id, json.dumps(found)])
    statement = f"SELECT component FROM {table} WHERE cluster_id = %s AND read_at - renewed_at > %s"
    return frozenset(component for (component,) in _execute(statement, [cluster_id, silent_after]))


def add_news(cluster_id: int, news: Sequence[tuple[str, str, dict[str, Any]]]) -> None:
    """Adds (owner, uid, difference) rows for `take_news`."""
    statement = f"""
        INSERT INTO {MirrorNews._meta.db_table} (cluster_id, owner, object_uid, difference)
        SELECT %s, * FROM unnest(%s::text[], %s::text[], %s::jsonb[])"""
    owners, uids, differences = zip(*news, strict=True)
    _execute(statement, [cluster_id, list(owners), list(uids), [json.dumps(one) for one in differences]])


def mark_kind(
    cluster_id: int, kind: str, epoch: int, *, is_listed: bool, is_heard: bool, version: str, problem: str | None
) -> None:
    """Uses the database's clock. An empty or earlier `version` and a `problem` of None keep the stored value."""
    statement = f"""
        INSERT INTO {MirrorKind._meta.db_table} AS old
               (cluster_id, kind, epoch, listed_at, heard_at, resource_version, problem)
        VALUES (%(cluster_id)s, %(kind)s, %(epoch)s, CASE WHEN %(is_listed)s THEN now() END, now(), %(version)s,
                coalesce(%(problem)s, ''))
        ON CONFLICT (cluster_id, kind) DO UPDATE SET
               epoch = excluded.epoch,
               listed_at = coalesce(excluded.listed_at, old.listed_at),
               heard_at = CASE WHEN %(is_heard)s THEN now() ELSE old.heard_at END,
               resource_version = CASE WHEN (length(%(version)s), %(version)s)
                                          < (length(old.resource_version), old.resource_version)
                                       THEN old.resource_version ELSE %(version)s END,
               problem = coalesce(%(problem)s, old.problem)"""
    values = {"cluster_id": cluster_id, "kind": kind, "epoch": epoch, "is_listed": is_listed}
    _execute(statement, {**values, "is_heard": is_heard, "version": version, "problem": problem})


def _execute(statement: str, parameters: Sequence[Any] | dict[str, Any]) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        return cursor.fetchall() if cursor.description else []
