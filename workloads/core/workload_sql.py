"""Reads workloads with related rows, and their last runs. Uses SQL text for reads of every rendering: the ORM would
take longer to compose such statements than PostgreSQL takes to answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from django.db import connection
from django.db.models import QuerySet

from accounts.models import User
from catalog.models import GpuClass
from cluster.manifests.metadata import IDENTITY_LABEL
from portal.core.sql import columns, instance, instance_or_none
from tenants.core.namespace_sql import NAMESPACE_COLUMNS, NAMESPACE_FROM, namespace_from_row
from tenants.models import Namespace
from workloads.models import NotebookWatch, Run, Volume, Workload


def with_related(rows: QuerySet[Workload]) -> QuerySet[Workload]:
    return rows.select_related("gpu_class", "namespace__cluster", "tenant", "created_by", "volume")


def latest_workloads(namespace: Namespace, at_most: int) -> list[Workload]:
    """Returns workloads that are not deleted, newest first and `with_names`; the namespace comes with its own names.
    One query.
    """
    with connection.cursor() as cursor:
        cursor.execute(_LATEST, [namespace.pk, at_most])
        rows = cursor.fetchall()
    return in_namespace(namespace, workloads_from_rows(map(iter, rows)))


def workloads_by_id(keys: Sequence[int]) -> list[Workload]:
    """Returns workloads of one namespace, in the given order and `with_names`. One query, none for an empty list."""
    if not keys:
        return []
    with connection.cursor() as cursor:
        cursor.execute(_READ, [list(keys)])
        rows = [iter(row) for row in cursor.fetchall()]
    found = {one.pk: one for one in workloads_from_rows(rows)}
    return in_namespace(namespace_from_row(rows[0]), [found[key] for key in keys if key in found]) if found else []


# Columns to select FROM workloads with these joins; the values are read with `pointing`.
RELATED_COLUMNS = ", ".join(
    [columns(Workload, "workload"), columns(GpuClass, "gpu_class"), columns(User, "person"), columns(Volume, "volume")]
)
RELATED_JOINS = f"""
  JOIN {GpuClass._meta.db_table} gpu_class ON gpu_class.id = workload.gpu_class_id
  JOIN {User._meta.db_table} person ON person.id = workload.created_by_id
  LEFT JOIN {Volume._meta.db_table} volume ON volume.id = workload.volume_id"""


def workload_from_row(values: Iterator[Any], known: dict[Any, Any] | None = None) -> Workload:
    """Returns a workload without its namespace. `known`: classes and users of earlier rows; a team has only a few of
    them.
    """
    found = instance(Workload, values)
    # Sets the same as select_related does, without the cost of a descriptor for each.
    there = found._state.fields_cache
    there["gpu_class"], there["created_by"] = instance(GpuClass, values, known), instance(User, values, known)
    there["volume"] = instance_or_none(Volume, values)
    return found


def workloads_from_rows(rows: Iterable[Iterator[Any]]) -> list[Workload]:
    known: dict[Any, Any] = {}
    return [workload_from_row(row, known) for row in rows]


def in_namespace(namespace: Namespace, found: list[Workload]) -> list[Workload]:
    for one in found:
        one._state.fields_cache.update(namespace=namespace, tenant=namespace.tenant)
    return found


_READ = f"""
SELECT {RELATED_COLUMNS}, {NAMESPACE_COLUMNS}
  FROM {NAMESPACE_FROM} JOIN {Workload._meta.db_table} workload ON workload.namespace_id = namespace.id {RELATED_JOINS}
 WHERE workload.id = ANY(%s)"""
_LATEST = f"""
SELECT {RELATED_COLUMNS} FROM {Workload._meta.db_table} workload {RELATED_JOINS}
 WHERE workload.namespace_id = %s AND workload.deleted_at IS NULL ORDER BY workload.id DESC LIMIT %s"""


def last_runs(workloads: Sequence[Workload]) -> dict[int, Run]:
    """Returns by workload id the last run with its watch. One query, as SQL text for speed: every rendering makes
    it.
    """
    with connection.cursor() as cursor:
        cursor.execute(_LAST_RUNS, [[workload.pk for workload in workloads]])
        rows = cursor.fetchall()
    found = {}
    for row in rows:
        values = iter(row)
        run, watch = instance(Run, values), instance_or_none(NotebookWatch, values)
        # As select_related does: a missing watch is not queried again.
        run._state.fields_cache["watch"] = watch
        found[run.workload_id] = run
    return found


_LAST_RUNS = f"""
SELECT DISTINCT ON (run.workload_id) {columns(Run, "run")}, {columns(NotebookWatch, "watch")}
  FROM {Run._meta.db_table} run LEFT JOIN {NotebookWatch._meta.db_table} watch ON watch.run_id = run.id
 WHERE run.workload_id = ANY(%s) ORDER BY run.workload_id, run.number DESC"""


IDENTITY = "coalesce(run.spec ->> 'identity', '')"


def of_same_run(mirrored: str, identity: str = IDENTITY) -> str:
    """SQL for aliases `run` and `mirrored`, a Job or pod of that name: it was not made for another run, as
    `cluster.manifests.metadata.names_other_row` says it.
    """
    label = f"{mirrored}.record #>> '{{labels,{IDENTITY_LABEL}}}'"
    return f"coalesce({label}, '') IN ('', {identity})"
