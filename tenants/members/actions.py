"""The actions that add and remove members and change their role."""

from __future__ import annotations

from django.db import transaction
from django.utils import timezone

from accounts.api_tokens.actions import end_token
from accounts.api_tokens.queries import tokens_of_team
from accounts.core.actor import Actor
from accounts.events.actions import deliver, record
from accounts.models import Notice, User
from accounts.people.queries import user_at_verified_address
from cluster.models import MirrorJob
from portal.core.due import wake_owners
from portal.core.errors import NOT_FOUND, Refused, get_or_refuse, refuse_if
from tenants.core.notifications import hint_team_pages
from tenants.members import policy, queries
from tenants.members.invitations.actions import invite
from tenants.members.invitations.queries import pending_invitations, pending_join_requests
from tenants.members.mails import role_notice
from tenants.models import Invitation, JoinRequest, Membership, Tenant

# ---- changes by owners and managers ------------------------------------------------------------------------------


@transaction.atomic
def add_member(tenant_slug: str, *, email: str, role: str, by: Actor) -> Membership | Invitation:
    """Adds a person with an account at once; any other address gets an invitation.

    Raises Refused: not_found (404), not_allowed (403), unknown_role, bad_address (422), already_member,
    already_invited, suspended (409).
    """
    tenant = get_or_refuse(Tenant.objects.visible_to(by), slug=tenant_slug)
    standing = queries.standing_of(by, tenant)
    refuse_if(policy.may_manage_members(by, standing))
    refuse_if(policy.may_give_role(by, standing, role))
    email = email.strip().lower()
    user = user_at_verified_address(email)
    if user is None:
        return invite(tenant, email, role, by)
    refuse_if(policy.may_be_added(email, is_active=user.is_active))
    return _add_membership(tenant, user, role, by)


def _add_membership(tenant: Tenant, user: User, role: str, by: Actor, *, by_group: bool = False) -> Membership:
    membership = Membership.objects.create(tenant=tenant, user=user, role=role, by_group=by_group)
    event = record(by, "member.added", tenant, tenant=tenant.slug, after={"user": user.email, "role": role})
    # This also answers a pending join request, and an invitation sent before the account existed.
    answer = {"state": JoinRequest.State.ACCEPTED, "decided_by": by.user, "decided_at": timezone.now()}
    pending_join_requests(tenant, user).update(**answer)
    at_their_address = pending_invitations(user.email).filter(tenant=tenant)
    at_their_address.update(state=Invitation.State.ACCEPTED, ended_at=timezone.now())
    subject, body = role_notice(tenant, role)
    deliver(event, [user], subject=subject, body=body)
    hint_team_pages(tenant)
    return membership


@transaction.atomic
def set_role(tenant_slug: str, *, user_id: int, role: str, by: Actor) -> Membership:
    """The same role again changes nothing.

    Raises Refused: not_found (404), not_allowed (403), unknown_role (422), last_owner (409).
    """
    tenant, members = _locked(tenant_slug, by)
    member = _among(members, user_id)
    standing = queries.standing_of(by, tenant)
    refuse_if(policy.may_manage_members(by, standing))
    refuse_if(policy.may_give_role(by, standing, role))
    if member.role == role:
        return member
    refuse_if(policy.may_take_role(by, standing, role=member.role, owners=_owners(members)))
    before, member.role = member.role, role
    member.by_group = by.user is None and member.by_group
    member.save(update_fields=["role", "by_group"])
    event = record(
        by,
        "member.changed",
        tenant,
        tenant=tenant.slug,
        before={"user": member.user.email, "role": before},
        after={"role": role},
    )
    subject, body = role_notice(tenant, role)
    deliver(event, [member.user], subject=subject, body=body)
    hint_team_pages(tenant)
    _wake_workloads(tenant)
    return member


@transaction.atomic
def place_by_group(tenant_slug: str, user: User, *, role: str, by: Actor) -> None:
    """Sets the role that a group of the issuer gives. A person who was added by hand keeps the role given by hand.

    Raises Refused: not_found (404), unknown_role (422), last_owner (409).
    """
    tenant, rows = _locked(tenant_slug, by)
    held = next((row for row in rows if row.user_id == user.pk), None)
    if held is None:
        refuse_if(policy.may_give_role(by, queries.standing_of(by, tenant), role))
        _add_membership(tenant, user, role, by, by_group=True)
    elif held.by_group:
        set_role(tenant_slug, user_id=user.pk, role=role, by=by)


@transaction.atomic
def remove_member(tenant_slug: str, *, user_id: int, by: Actor) -> None:
    """Also ends the tokens that the person created for the team, and deletes the person's notices about the team.

    Raises Refused: not_found (404), not_allowed (403), last_owner (409).
    """
    tenant, members = _locked(tenant_slug, by)
    gone = _among(members, user_id)
    refuse_if(
        policy.may_remove_member(
            by,
            queries.standing_of(by, tenant),
            role=gone.role,
            is_self=by.user_id == user_id,
            owners=_owners(members),
        )
    )
    email = gone.user.email
    gone.delete()
    Notice.objects.filter(user=user_id, event__tenant=tenant.slug).delete()
    record(by, "member.removed", tenant, tenant=tenant.slug, before={"user": email, "role": gone.role})
    for token in tokens_of_team(tenant.slug).filter(user=user_id):
        end_token(token, by=by)
    hint_team_pages(tenant)
    _wake_workloads(tenant)


# ---- settings by owners ------------------------------------------------------------------------------------------


@transaction.atomic
def set_sharing(tenant_slug: str, *, shares_notebooks: bool, by: Actor) -> Tenant:
    """Chooses who can open notebooks that are launched without a choice from now on; existing ones are not changed.
    The same choice again changes nothing.

    Raises Refused: not_found (404), not_allowed, missing_scope (403).
    """
    tenant = get_or_refuse(Tenant.objects.visible_to(by), slug=tenant_slug)
    refuse_if(policy.may_set_sharing(by, queries.standing_of(by, tenant)))
    rows = Tenant.objects.filter(pk=tenant.pk).exclude(shares_notebooks=shares_notebooks)
    if rows.update(shares_notebooks=shares_notebooks):
        after = {"shares_notebooks": shares_notebooks}
        record(by, "tenant.sharing_set", tenant, tenant=tenant.slug, after=after)
    tenant.shares_notebooks = shares_notebooks
    return tenant


# ---- helper functions --------------------------------------------------------------------------------------------


def _locked(tenant_slug: str, by: Actor) -> tuple[Tenant, list[Membership]]:
    """Locks all members together and in order: two owners who leave at once must not both pass the last-owner check."""
    tenant = get_or_refuse(Tenant.objects.visible_to(by), slug=tenant_slug)
    rows = Membership.objects.select_for_update(of=("self",)).filter(tenant=tenant).select_related("user")
    return tenant, list(rows.order_by("pk"))


def _among(members: list[Membership], user_id: int) -> Membership:
    found = next((member for member in members if member.user_id == user_id), None)
    if found is None:
        raise Refused(NOT_FOUND)
    return found


def _wake_workloads(tenant: Tenant) -> None:
    """Wakes everything that has a Job in the team: a notebook ends when its user loses the right to run it."""
    for cluster_id, name in tenant.namespaces.values_list("cluster_id", "name"):
        jobs = MirrorJob.objects.filter(cluster_id=cluster_id, namespace=name)
        wake_owners(set(jobs.values_list("owner", flat=True)))


def _owners(members: list[Membership]) -> int:
    return sum(member.role == Membership.Role.OWNER for member in members)
