"""The action that creates a team with its owner and its namespace."""

from __future__ import annotations

from django.db import transaction

from accounts.core.actor import Actor
from accounts.events.actions import record
from accounts.models import User
from cluster.manifests.names import dns_label
from cluster.models import Cluster
from cluster.reads import queries as read_queries
from portal.core.due import touch
from portal.core.errors import refuse, refuse_if
from portal.core.plain_text import hidden_refusal
from tenants.models import Membership, Namespace, Tenant
from tenants.onboarding.teams import policy


@transaction.atomic
def create_tenant(
    *,
    slug: str,
    name: str,
    owner: User,
    by: Actor,
    purpose: str = "",
    namespace: str = "",
    cluster: Cluster | None = None,
    origin: str = "",
) -> Tenant:
    """Creates a team with its owner and its namespace, which a worker creates at once, without quota; `origin`: see
    Namespace.Origin.

    Raises Refused: not_allowed (403), bad_name, reserved (422), slug_taken (409).
    """
    refuse_if(policy.may_create_tenant(by))
    return create_tenant_rows(
        slug=slug, name=name, owner=owner, by=by, purpose=purpose, namespace=namespace, cluster=cluster, origin=origin
    )


@transaction.atomic
def create_tenant_rows(
    *,
    slug: str,
    name: str,
    owner: User,
    by: Actor,
    purpose: str = "",
    namespace: str = "",
    cluster: Cluster | None = None,
    origin: str = "",
) -> Tenant:
    """Like `create_tenant` without the permission check: the calling action has checked it
    (tenants.onboarding.team_requests.actions).
    """
    refuse_if(policy.slug_refusal(slug))
    if not name.strip():
        raise refuse("bad_name", "Enter a team name of 1 to 80 characters.", field="name")
    refuse_if(hidden_refusal("name", name) or hidden_refusal("purpose", purpose))
    tenant = Tenant.objects.create(slug=slug, name=" ".join(name.split())[:80], purpose=purpose[:300])
    Membership.objects.create(tenant=tenant, user=owner, role=Membership.Role.OWNER)
    row = Namespace.objects.create(
        tenant=tenant,
        cluster=cluster or read_queries.current_cluster(),
        name=namespace or dns_label(slug),
        observed_generation=0,
        origin=origin,
    )
    touch(Namespace, row.pk)
    record(by, "tenant.created", tenant, tenant=slug, after={"name": tenant.name, "owner": owner.email})
    return tenant
