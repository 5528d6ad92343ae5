"""Propose the adoption of a namespace, withdraw the proposal, accept it, undo it."""

from __future__ import annotations

from collections.abc import Collection

from django.db import transaction
from django.db.models.functions import Now

from accounts.core.actor import Actor
from accounts.events.actions import deliver, record
from accounts.models import User
from cluster.models import Cluster
from operations.adoption import policy, queries
from operations.adoption.findings import losses
from operations.models import Adoption
from portal.core.due import touch
from portal.core.errors import get_or_refuse, refuse, refuse_if
from portal.core.hints import page_hint
from tenants.core import policy as tenant_policy
from tenants.core import queries as tenant_queries
from tenants.core.notifications import page_url
from tenants.lifecycle.actions import set_namespace_state
from tenants.members.queries import managers_of
from tenants.models import Namespace
from tenants.onboarding.teams.actions import create_tenant

Origin = Namespace.Origin
# Nothing of the portal is in the namespace that would need time.
AT_ONCE = {"grace_hours": 0, "keep_days": 0}


@transaction.atomic
def propose_adoption(
    cluster: Cluster, namespace: str, *, slug: str, name: str, owner: str, purpose: str = "", by: Actor
) -> Adoption:
    """Creates a team for an existing namespace. Nothing changes in the cluster; the worker reads what is there, and the
    owner is told. `owner`: the address of an account.

    Raises Refused: not_allowed (403), bad_adoption, unknown_person (422), and what `create_tenant` raises.
    """
    refuse_if(tenant_policy.may_operate(by))
    namespace = namespace.strip()
    refuse_if(policy.namespace_refusal(namespace, is_known=queries.is_foreign_namespace(cluster, namespace)))
    person = User.objects.filter(email__iexact=owner.strip(), is_active=True).first()
    if person is None:
        text = f"No active account has the address '{owner.strip()[:100]}'. Create it on the page People first."
        raise refuse("unknown_person", text, field="owner")
    team = create_tenant(
        slug=slug,
        name=name,
        owner=person,
        purpose=purpose,
        namespace=namespace,
        cluster=cluster,
        origin=Origin.UNADOPTED,
        by=by,
    )
    row = Adoption.objects.create(namespace=team.namespaces.get(), proposed_by=by.person, observed_generation=0)
    event = record(by, "adoption.proposed", row, tenant=slug, after={"namespace": namespace, "owner": person.email})
    deliver(
        event,
        [person],
        subject=f"Decide whether {team.name} takes over the namespace {namespace}",
        body=(
            f"{by.name} proposes that your team {team.name} takes over the namespace {namespace} of the cluster "
            f"{cluster.name}. Until you accept, nothing changes there. Once an administrator of the cluster has "
            "consented, this page lists what would stay and what would be lost:\n\n"
            f"{page_url(f'/teams/{slug}/adoption')}"
        ),
    )
    touch(Adoption, row.pk)
    return row


@transaction.atomic
def accept_adoption(pk: int, accepted: Collection[str], *, by: Actor) -> Adoption:
    """Only an owner of the team. `accepted`: the losses that were shown, each as `code kind name`. After an undo it
    begins again.

    Raises Refused: not_found (404), not_allowed (403), bad_adoption, conflict (409).
    """
    row = _locked(pk, by)
    refuse_if(
        policy.may_accept(
            by,
            role=queries.role_in(by, row),
            state=row.state,
            is_read=row.read_at is not None,
            is_closed=row.namespace.wanted == Namespace.Wanted.CLOSED,
            team=row.namespace.tenant.name,
        )
    )
    wanted = sorted(losses(row.findings))
    refuse_if(policy.accepted_refusal([loss_text(key) for key in wanted], accepted))
    Adoption.objects.filter(pk=pk).update(
        accepted_by=by.person, accepted_at=Now(), accepted=[list(key) for key in wanted], undone_at=None
    )
    record(by, "adoption.accepted", row, tenant=row.namespace.tenant.slug, after={"losses": [*map(loss_text, wanted)]})
    _begin(row)
    row.refresh_from_db()
    return row


@transaction.atomic
def undo_adoption(pk: int, *, by: Actor) -> Adoption:
    """Only operators. Nothing starts from now on; the worker removes what the portal has put into the namespace, and
    puts back the labels that it had. Also of an adoption that is accepted and not done yet.

    Raises Refused: not_found (404), not_allowed (403), bad_adoption (409).
    """
    row = _locked(pk, by)
    refuse_if(tenant_policy.may_operate(by))
    is_portals = row.namespace.origin == Origin.PORTAL
    refuse_if(policy.may_undo(row.state, is_portals=is_portals, active_runs=queries.active_runs(row)))
    Adoption.objects.filter(pk=pk).update(undo_requested_at=Now())
    row.refresh_from_db(fields=["undo_requested_at"])
    # From now on nothing can be launched; the worker still owns what it has to remove.
    Namespace.objects.filter(pk=row.namespace_id).update(origin=Origin.UNADOPTED)
    team, namespace = row.namespace.tenant, row.namespace.name
    event = record(by, "adoption.undo_requested", row, tenant=team.slug)
    _begin(row)
    deliver(
        event,
        managers_of(team),
        subject=f"{namespace} is given back: the portal no longer manages it",
        body=(
            f"{by.name} undoes the adoption of {namespace} by {team.name}. What others have there stays. Volumes of "
            "the portal stay as PersistentVolumeClaims, and are no longer listed in the portal.\n\n"
            f"{page_url(f'/teams/{team.slug}/adoption')}"
        ),
    )
    return row


@transaction.atomic
def withdraw_adoption(pk: int, *, by: Actor) -> Adoption:
    """Only operators, and only what is not accepted: the team of the proposal is closed at once, and another one may
    adopt the namespace. Nothing changes in the cluster.

    Raises Refused: not_found (404), not_allowed (403), bad_adoption (409).
    """
    row = _locked(pk, by)
    refuse_if(tenant_policy.may_operate(by))
    refuse_if(policy.may_withdraw(row.state))
    team = row.namespace.tenant
    record(by, "adoption.withdrawn", row, tenant=team.slug, after={"namespace": row.namespace.name})
    because = f"The proposal to adopt the namespace {row.namespace.name} is withdrawn. Nothing changes there."
    set_namespace_state(row.namespace_id, to=Namespace.Wanted.CLOSED, because=because, **AT_ONCE, by=by)
    return get_or_refuse(queries.adoptions_visible_to(by), pk=pk)


def loss_text(key: Collection[str]) -> str:
    return " ".join(key)


def _locked(pk: int, by: Actor) -> Adoption:
    """The namespace first, in the same order as launches and lifecycle actions."""
    row = get_or_refuse(queries.adoptions_visible_to(by), pk=pk)
    tenant_queries.lock_namespace(row.namespace_id)
    return get_or_refuse(Adoption.objects.select_for_update(of=("self",)).select_related("namespace__tenant"), pk=pk)


def _begin(row: Adoption) -> None:
    touch(Adoption, row.pk)
    page_hint(row.namespace.name)
