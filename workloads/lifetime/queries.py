"""Who may still have a notebook in a team, as SQL and as a condition of the ORM."""

from __future__ import annotations

from django.db.models import OuterRef, QuerySet

from accounts.models import User
from tenants.models import Membership
from workloads.core.policy import LAUNCHERS

# For SQL with the tables `run` and `workload`: the user who requested the run may launch in its team.
MAY_LAUNCH_SQL = f"""EXISTS (
  SELECT FROM {Membership._meta.db_table} member
    JOIN {User._meta.db_table} person ON person.id = member.user_id AND person.is_active
   WHERE member.tenant_id = workload.tenant_id AND member.user_id = run.requested_by_id
     AND member.role IN ({", ".join(f"'{role}'" for role in sorted(LAUNCHERS))}))"""


def launch_rights() -> QuerySet[Membership]:
    """For queries on runs: memberships that allow the run's user to launch in its team."""
    return Membership.objects.filter(
        tenant=OuterRef("workload__tenant"),
        user=OuterRef("requested_by"),
        user__is_active=True,
        role__in=sorted(LAUNCHERS),
    )
