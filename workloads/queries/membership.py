"""Who somebody is in a team: the first thing that every page and every action about workloads asks."""

from __future__ import annotations

from django.db import DataError, connection

from accounts.actor import Actor
from portal.errors import NOT_FOUND, Refused
from tenants.models import Membership, Namespace
from tenants.queries.placed import COLUMNS, FROM, placed
from workloads import policy
from workloads.models import Workload


def team(by: Actor, slug: str) -> tuple[Namespace, policy.TeamFacts]:
    """The namespace that work of this tenant goes to, and who `by` is there. One query, as text: whoever launches waits
    for it. Raises Refused (404).
    """
    if by.confined_to not in ("", slug):
        raise Refused(NOT_FOUND)
    try:
        with connection.cursor() as cursor:
            cursor.execute(_TEAM, [by.user_id, slug, by.user is None or by.sees_all])
            found = cursor.fetchone()
    except (ValueError, DataError) as error:  # a NUL names nothing either
        raise Refused(NOT_FOUND) from error
    if found is None:
        raise Refused(NOT_FOUND)
    values = iter(found)
    namespace = placed(values)
    role, count = values
    return namespace, policy.TeamFacts(
        team=namespace.tenant.name, role=role or "", namespace_wanted=namespace.wanted, workloads=count
    )


# Who may know of it: as `visible_to` of namespaces.
_TEAM = f"""
SELECT {COLUMNS}, member.role,
       (SELECT count(*) FROM {Workload._meta.db_table} workload
         WHERE workload.namespace_id = namespace.id AND workload.deleted_at IS NULL)
  FROM {FROM}
  LEFT JOIN {Membership._meta.db_table} member ON member.tenant_id = tenant.id AND member.user_id = %s
 WHERE tenant.slug = %s AND (member.id IS NOT NULL OR %s)"""
