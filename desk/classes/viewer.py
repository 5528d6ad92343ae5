"""The user who views a class: the user's first team, and what the user may do there with the class."""

from __future__ import annotations

from dataclasses import dataclass

from django.urls import reverse

from accounts.core.actor import Actor
from catalog.models import GpuClass
from portal.core.errors import Refusal
from tenants.members import queries as member_queries
from tenants.members.models import in_teams_of
from tenants.models import Namespace, Tenant
from tenants.requests import policy as tenants_policy
from workloads.core import policy
from workloads.core import queries as core_queries
from workloads.launch import queries as launch_queries


@dataclass(frozen=True)
class Viewer:
    """`launch`, `request`: why the user may not, for any class. Both are empty without a team."""

    tenant: Tenant | None = None
    namespace: Namespace | None = None
    launch: Refusal | None = None
    request: Refusal | None = None
    is_staff: bool = False

    def launch_href(self, one: GpuClass) -> str:
        return "" if self.tenant is None else f"{reverse('launch', args=[self.tenant.slug])}?gpu_class={one.slug}"

    def launch_refusal(self, never: Refusal | None) -> Refusal | None:
        """`never`: why no workload on the class can start in the team."""
        return None if self.tenant is None else self.launch or never

    def request_href(self, one: GpuClass) -> str:
        return "" if self.tenant is None else f"{reverse('request-new', args=[self.tenant.slug])}?class={one.slug}"

    def request_refusal(self, one: GpuClass) -> Refusal | None:
        if self.tenant is None or self.request is not None:
            return self.request
        if one.life_cycle == GpuClass.LifeCycle.RETIRING:
            return Refusal("class_retiring", "This class is being retired: no new quota is granted.", status=409)
        return None


def viewer_of(by: Actor) -> Viewer:
    tenant = first_team(by)
    if tenant is None:
        return Viewer(is_staff=by.sees_all)
    namespace, team = core_queries.team(by, tenant.slug)
    return Viewer(
        tenant,
        namespace,
        policy.may_start_in(by, team) or policy.may_add(team),
        tenants_policy.may_file(by, member_queries.standing_of(by, tenant)),
    )


def never_starts(one: GpuClass, promised: int) -> Refusal | None:
    """Returns why no workload on it can start in a team with a quota of at most this many units."""
    return policy.may_ever_start(launch_queries.class_facts_of(one, promised, 1), 1)


def first_team(by: Actor) -> Tenant | None:
    """The first of the user's own teams: the user sees its page first."""
    return Tenant.objects.filter(in_teams_of(by)).order_by("slug").first()
