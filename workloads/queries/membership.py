"""Who somebody is in a team: the first thing that every page and every action about workloads asks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.db import DataError, connection

from accounts.actor import Actor
from portal.errors import NOT_FOUND, Refused
from portal.sql import select
from tenants.models import Membership, Namespace
from tenants.queries.placed import COLUMNS, FROM, placed
from workloads import policy
from workloads.models import Workload
from workloads.queries.latest import JOINS, POINTING, all_pointing, pointing, within


def team(by: Actor, slug: str) -> tuple[Namespace, policy.TeamFacts]:
    """The namespace that work of this tenant goes to, and who `by` is there. One query, as text: whoever launches waits
    for it. Raises Refused (404).
    """
    values = _one(_TEAM, by, slug)
    namespace = placed(values)
    role, count = values
    return namespace, policy.TeamFacts(
        team=namespace.tenant.name, role=role or "", namespace_wanted=namespace.wanted, workloads=count
    )


def named(by: Actor, slug: str, name: str) -> Workload:
    """The workload of this name that is not deleted, `with_names`. One query. Raises Refused (404)."""
    values = _one(_NAMED, by, slug, name)
    namespace = placed(values)
    return within(namespace, [pointing(values)])[0]


def newest(by: Actor, slug: str, before: int | None, at_most: int) -> list[Workload]:
    """Those of a team that are not deleted, newest first and `with_names`, from before the one of that id; a stranger's
    list is empty. One query.
    """
    if by.confined_to not in ("", slug):
        return []
    with connection.cursor() as cursor:
        cursor.execute(_NEWEST, [by.user_id, slug, by.user is None or by.sees_all, before, before, at_most])
        rows = [iter(row) for row in cursor.fetchall()]
    found = all_pointing(rows)
    return within(placed(rows[0]), found) if found else []


def locked(namespace: Namespace, name: str) -> Workload | None:
    """The workload of this name that is not deleted, for a change. As text: CI declares the same at every push."""
    found = select(Workload, "namespace_id = %s AND name = %s AND deleted_at IS NULL FOR UPDATE", [namespace.pk, name])
    return found[0] if found else None


def _one(statement: str, by: Actor, slug: str, *more: str) -> Iterator[Any]:
    if by.confined_to not in ("", slug):
        raise Refused(NOT_FOUND)
    try:
        with connection.cursor() as cursor:
            cursor.execute(statement, [by.user_id, slug, by.user is None or by.sees_all, *more])
            found = cursor.fetchone()
    except (ValueError, DataError) as error:  # a NUL names nothing either
        raise Refused(NOT_FOUND) from error
    if found is None:
        raise Refused(NOT_FOUND)
    return iter(found)


# Who may know of it: as `visible_to` of namespaces.
_KNOWN = f"""
  LEFT JOIN {Membership._meta.db_table} member ON member.tenant_id = tenant.id AND member.user_id = %s
 WHERE tenant.slug = %s AND (member.id IS NOT NULL OR %s)"""
_TEAM = f"""
SELECT {COLUMNS}, member.role,
       (SELECT count(*) FROM {Workload._meta.db_table} workload
         WHERE workload.namespace_id = namespace.id AND workload.deleted_at IS NULL)
  FROM {FROM} {_KNOWN}"""
_NAMED = f"""
SELECT {COLUMNS}, {POINTING}
  FROM {FROM} JOIN {Workload._meta.db_table} workload ON workload.namespace_id = namespace.id {JOINS} {_KNOWN}
   AND workload.name = %s AND workload.deleted_at IS NULL"""
_NEWEST = f"""
SELECT {POINTING}, {COLUMNS}
  FROM {FROM} JOIN {Workload._meta.db_table} workload ON workload.namespace_id = namespace.id {JOINS} {_KNOWN}
   AND workload.deleted_at IS NULL AND (%s::bigint IS NULL OR workload.id < %s)
 ORDER BY workload.id DESC LIMIT %s"""
