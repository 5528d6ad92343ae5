"""Adoptions as pages and actions read them."""

from __future__ import annotations

from django.db.models import QuerySet

from accounts.core.actor import Actor
from cluster.models import Cluster
from cluster.reads import queries as mirror
from operations.models import Adoption
from portal.core.errors import get_or_refuse
from tenants.models import Membership, Namespace
from workloads.models import Run


def adoptions_visible_to(by: Actor) -> QuerySet[Adoption]:
    """Those of the actor's own teams; all for staff. With namespace, team and people."""
    seen = Namespace.objects.visible_to(by).values("pk")
    related = ("namespace__tenant", "namespace__cluster", "proposed_by", "accepted_by")
    return Adoption.objects.filter(namespace__in=seen).select_related(*related)


def adoption_of_team(by: Actor, slug: str) -> Adoption:
    """Raises Refused (404)."""
    return get_or_refuse(adoptions_visible_to(by), namespace__tenant__slug=slug)


def is_foreign_namespace(cluster: Cluster, name: str) -> bool | None:
    """Whether the cluster has this namespace and no team does. None: the mirror does not know."""
    if Namespace.objects.filter(cluster=cluster, name=name).exists():
        return False
    if not mirror.is_known(cluster.pk, "Namespace"):
        return None
    return mirror.object_named(cluster.pk, "Namespace", name) is not None


def role_in(by: Actor, row: Adoption) -> str:
    roles = Membership.objects.of(by).filter(tenant=row.namespace.tenant_id).values_list("role", flat=True)
    return roles.first() or ""


def active_runs(row: Adoption) -> int:
    return Run.objects.filter(workload__namespace=row.namespace_id, ended_at=None).count()
