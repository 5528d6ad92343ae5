"""The users that a rule notifies about a run, and the address of its page."""

from __future__ import annotations

from functools import lru_cache

from django.urls import reverse

from accounts.models import User
from tenants.core.notifications import page_url as address
from tenants.members import queries as member_queries
from workloads.models import Run, Workload


def recipients_of(run: Run) -> list[User]:
    """Returns the user who started the run and the user who launched the workload, if they are still in the team;
    otherwise the team's managers.
    """
    team = run.workload.tenant
    asked = {run.requested_by_id, run.workload.created_by_id}
    found = list(User.objects.filter(pk__in=asked, memberships__tenant=team, is_active=True).order_by("pk"))
    return found or member_queries.managers_of(team)


def page_url(workload: Workload) -> str:
    return address(_path(workload.tenant.slug, workload.name))


@lru_cache(4096)
def _path(tenant: str, name: str) -> str:
    return reverse("workload", args=[tenant, name])
