"""The role of a user in a team, which every page and every action about workloads reads first; and reads of one
workload, its last run, and the facts that policies need.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.db import DataError, connection
from django.db.models import QuerySet

from accounts.core.actor import Actor
from cluster.manifests import names
from portal.core.errors import NOT_FOUND, Refused, get_or_refuse
from portal.core.sql import select
from tenants.core.namespace_sql import NAMESPACE_COLUMNS, NAMESPACE_FROM, namespace_from_row
from tenants.models import Membership, Namespace
from workloads.core import policy
from workloads.core import policy as core_policy
from workloads.core.workload_sql import (
    RELATED_COLUMNS,
    RELATED_JOINS,
    in_namespace,
    workload_from_row,
    workloads_from_rows,
)
from workloads.models import NotebookWatch, Run, TeamBudget, Workload


def team(by: Actor, slug: str) -> tuple[Namespace, policy.TeamFacts]:
    """Returns the namespace of this team's workloads, and the role of `by` in the team. One query, written as SQL text
    for speed: a launch waits for it. Raises Refused (404).
    """
    values = _one(_TEAM, by, slug)
    namespace = namespace_from_row(values)
    role, count, *budget = values
    return namespace, policy.TeamFacts(
        team=namespace.tenant.name,
        role=role or "",
        namespace_wanted=namespace.wanted,
        workloads=count,
        budget=policy.BudgetFacts(*budget) if budget[0] is not None else None,
        is_unadopted=namespace.origin == Namespace.Origin.UNADOPTED,
    )


def visible_workload(by: Actor, slug: str, name: str) -> Workload:
    """Returns the workload of this name that is not deleted, `with_names`. One query. Raises Refused (404)."""
    values = _one(_NAMED, by, slug, name)
    namespace = namespace_from_row(values)
    return in_namespace(namespace, [workload_from_row(values)])[0]


def newest_workloads(by: Actor, slug: str, before: int | None, at_most: int) -> list[Workload]:
    """Returns the team's workloads that are not deleted and older than that id, newest first and `with_names`; an empty
    list for a user without access. One query.
    """
    if by.confined_to not in ("", slug):
        return []
    with connection.cursor() as cursor:
        cursor.execute(_NEWEST, [by.user_id, slug, by.user is None or by.sees_all, before, before, at_most])
        rows = [iter(row) for row in cursor.fetchall()]
    found = workloads_from_rows(rows)
    return in_namespace(namespace_from_row(rows[0]), found) if found else []


def locked_workload(namespace: Namespace, name: str) -> Workload | None:
    """Locks and returns the workload of this name that is not deleted. SQL text for speed: CI declares the same at
    every push.
    """
    found = select(Workload, "namespace_id = %s AND name = %s AND deleted_at IS NULL FOR UPDATE", [namespace.pk, name])
    return found[0] if found else None


def _one(statement: str, by: Actor, slug: str, *more: str) -> Iterator[Any]:
    if by.confined_to not in ("", slug):
        raise Refused(NOT_FOUND)
    try:
        with connection.cursor() as cursor:
            cursor.execute(statement, [by.user_id, slug, by.user is None or by.sees_all, *more])
            found = cursor.fetchone()
    except (ValueError, DataError) as error:  # no workload has a name with a NUL
        raise Refused(NOT_FOUND) from error
    if found is None:
        raise Refused(NOT_FOUND)
    return iter(found)


# Users who may see it: as `visible_to` of namespaces.
_KNOWN = f"""
  LEFT JOIN {Membership._meta.db_table} member ON member.tenant_id = tenant.id AND member.user_id = %s
 WHERE tenant.slug = %s AND (member.id IS NOT NULL OR %s)"""
_TEAM = f"""
SELECT {NAMESPACE_COLUMNS}, member.role,
       (SELECT count(*) FROM {Workload._meta.db_table} workload
         WHERE workload.namespace_id = namespace.id AND workload.deleted_at IS NULL),
       budget.amount, budget.cost, budget.at_limit, budget.confirmed_at IS NOT NULL, budget.month_until
  FROM {NAMESPACE_FROM}
  LEFT JOIN {TeamBudget._meta.db_table} budget
    ON budget.tenant_id = tenant.id AND budget.month_since <= now() AND budget.month_until > now() {_KNOWN}"""
_NAMED = f"""
SELECT {NAMESPACE_COLUMNS}, {RELATED_COLUMNS}
  FROM {NAMESPACE_FROM} JOIN {Workload._meta.db_table} workload ON workload.namespace_id = namespace.id
       {RELATED_JOINS} {_KNOWN}
   AND workload.name = %s AND workload.deleted_at IS NULL"""
_NEWEST = f"""
SELECT {RELATED_COLUMNS}, {NAMESPACE_COLUMNS}
  FROM {NAMESPACE_FROM} JOIN {Workload._meta.db_table} workload ON workload.namespace_id = namespace.id
       {RELATED_JOINS} {_KNOWN}
   AND workload.deleted_at IS NULL AND (%s::bigint IS NULL OR workload.id < %s)
 ORDER BY workload.id DESC LIMIT %s"""


def undeleted_workload(by: Actor, namespace: Namespace, name: str) -> Workload:
    """For an action: returns a workload that is not marked for deletion. One query, with related rows. Raises Refused
    (404).
    """
    rows = Workload.objects.visible_to(by).select_related("gpu_class", "namespace", "tenant", "volume", "created_by")
    return get_or_refuse(rows.filter(delete_requested_at=None), namespace=namespace, name=name)


def locked_runs() -> QuerySet[Run]:
    """Locks only the runs: rows that refer to them may be written meanwhile. Needs a transaction."""
    return Run.objects.select_for_update(of=("self",), no_key=True)


def locked_active_run(workload: Workload) -> Run | None:
    """Locks and returns the workload's run that has not ended."""
    return locked_runs().filter(workload=workload, ended_at=None).first()


def watch_of(run: Run) -> NotebookWatch | None:
    """No query if the watch was read with the run, as workload_sql.last_runs does."""
    return getattr(run, "watch", None)


def run_facts(workload: Workload, run: Run | None) -> core_policy.RunFacts:
    return core_policy.RunFacts(
        is_over=run is None or run.ended_at is not None,
        is_stopping=run is not None and run.stop_requested_at is not None,
        is_ready=run is not None and run.ready_at is not None and run.ended_at is None,
        is_deleting=workload.delete_requested_at is not None,
        created_by=workload.created_by_id,
        is_private=workload.visibility == Workload.Visibility.PRIVATE,
    )


def last_run(workload: Workload) -> Run | None:
    return Run.objects.filter(workload=workload).order_by("-number").first()


def visible_workloads(by: Actor, slug: str) -> QuerySet[Workload]:
    """Returns undeleted workloads of a team that the actor may see; an empty list for a user without access."""
    return Workload.objects.visible_to(by).filter(tenant__slug=slug)


def job_name(workload: Workload, run: Run) -> str:
    return names.run_name(workload.name, run.number)
