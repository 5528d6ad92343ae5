"""The actions by which people join a team: invite, accept, decline, request to join, answer."""

from __future__ import annotations

from datetime import timedelta

from django.db import transaction
from django.utils import timezone

from accounts.core.actor import Actor
from accounts.events.actions import deliver, deliver_to_address, record
from accounts.people.policy import address_refusal
from portal.core.errors import get_or_refuse, refuse_if
from portal.core.transitions import move_state
from portal.ui.text import date_with_year
from tenants.core.notifications import hint_team_pages, page_url
from tenants.members import policy as member_policy
from tenants.members import queries as member_queries
from tenants.members.invitations import queries as invitation_queries
from tenants.members.invitations.queries import pending_invitations, pending_join_requests
from tenants.members.mails import role_notice
from tenants.models import Invitation, JoinRequest, Membership, Tenant

INVITATION_PERIOD = timedelta(days=1)
INVITATION_LIFETIME = timedelta(days=30)


def invite(tenant: Tenant, email: str, role: str, by: Actor) -> Invitation:
    refuse_if(address_refusal(email))
    now = timezone.now()
    sent = Invitation.objects.filter(tenant=tenant, invited_at__gt=now - INVITATION_PERIOD)
    refuse_if(member_policy.may_invite_again(email, to_address=sent.filter(email=email).count(), by_team=sent.count()))
    # An expired invitation is replaced by the new one.
    pending_invitations(email).filter(tenant=tenant, expires_at__lte=now).update(
        state=Invitation.State.REVOKED, ended_at=now
    )
    row = Invitation.objects.create(
        tenant=tenant, email=email, role=role, invited_by=by.user, expires_at=now + INVITATION_LIFETIME
    )
    event = record(by, "member.invited", row, tenant=tenant.slug, after={"user": email, "role": role})
    until = date_with_year(row.expires_at)
    text = (
        f"{by.name} invites you to join {tenant.name} with the role {role}. Sign in with this address and accept by "
        f"{until}. If you have no account yet, ask an administrator of the portal.\n\n"
    )
    deliver_to_address(event, email, subject=f"Invitation to {tenant.name}", body=text + page_url("/start"))
    return row


@transaction.atomic
def revoke_invitation(tenant_slug: str, invitation_id: int, *, by: Actor) -> None:
    """Raises Refused: not_found (404), not_allowed (403), already_decided (409)."""
    tenant = get_or_refuse(Tenant.objects.visible_to(by), slug=tenant_slug)
    refuse_if(member_policy.may_manage_members(by, member_queries.standing_of(by, tenant)))
    row = get_or_refuse(Invitation.objects.filter(tenant=tenant), pk=invitation_id)
    move_state(Invitation, row.pk, to=Invitation.State.REVOKED, ended_at=timezone.now())
    record(by, "invitation.revoked", row, tenant=tenant.slug, before={"user": row.email, "role": row.role})


@transaction.atomic
def answer_join(
    tenant_slug: str, join_id: int, *, accept: bool, role: str = "member", reason: str = "", by: Actor
) -> JoinRequest:
    """Raises Refused: not_found (404), not_allowed (403), already_decided, already_member (409), unknown_role,
    reason_missing (422).
    """
    tenant = get_or_refuse(Tenant.objects.visible_to(by), slug=tenant_slug)
    standing = member_queries.standing_of(by, tenant)
    refuse_if(member_policy.may_manage_members(by, standing))
    row = get_or_refuse(JoinRequest.objects.filter(tenant=tenant).select_related("user"), pk=join_id)
    reason = " ".join(reason.split())
    refuse_if(member_policy.may_answer_join(by, standing, accept=accept, role=role, reason=reason))
    to = JoinRequest.State.ACCEPTED if accept else JoinRequest.State.DECLINED
    move_state(JoinRequest, row.pk, to=to, decided_by=by.user, decided_at=timezone.now(), reason=reason)
    if accept:
        Membership.objects.create(tenant=tenant, user=row.user, role=role)
    after = {"user": row.user.email, "accepted": accept, **({"role": role} if accept else {"reason": reason})}
    event = record(by, "join.answered", tenant, tenant=tenant.slug, after=after)
    if accept:
        subject, body = role_notice(tenant, role)
    else:
        subject, body = f"{tenant.name} declined your request to join", f"{reason}\n\n" + page_url("/start")
    deliver(event, [row.user], subject=subject, body=body)
    hint_team_pages(tenant)
    row.refresh_from_db()
    return row


@transaction.atomic
def ask_to_join(tenant_slug: str, *, message: str, by: Actor) -> JoinRequest:
    """Owners and managers are notified. Raises Refused: not_found (404), already_member, already_asked, closed (409),
    bad_message (422).
    """
    tenant = get_or_refuse(Tenant.objects.all(), slug=tenant_slug)
    message = " ".join(message.split())
    refuse_if(member_policy.may_ask_to_join(by, member_queries.standing_of(by, tenant), message=message))
    row = JoinRequest.objects.create(tenant=tenant, user=by.person, message=message)
    event = record(by, "join.asked", tenant, tenant=tenant.slug, after={"user": by.person.email, "message": message})
    told = f"{message}\n\n" if message else ""
    body = told + page_url(f"/teams/{tenant.slug}/members")
    deliver(event, member_queries.managers_of(tenant), subject=f"{by.name} requests to join {tenant.name}", body=body)
    hint_team_pages(tenant)
    return row


@transaction.atomic
def withdraw_join(join_id: int, *, by: Actor) -> None:
    """Raises Refused: not_found (404), also for another person's request; already_decided (409)."""
    row = get_or_refuse(JoinRequest.objects.filter(user=by.user).select_related("tenant"), pk=join_id)
    move_state(JoinRequest, row.pk, to=JoinRequest.State.WITHDRAWN, decided_at=timezone.now())
    record(by, "join.withdrawn", row.tenant, tenant=row.tenant.slug, after={"user": by.person.email})


@transaction.atomic
def accept_invitation(invitation_id: int, *, by: Actor) -> Membership:
    """Raises Refused: not_found (404), also for another address; already_decided, lapsed, already_member (409)."""
    row = _invitation_of(by, invitation_id)
    refuse_if(member_policy.may_accept_invitation(expires_at=row.expires_at, now=timezone.now()))
    move_state(Invitation, row.pk, to=Invitation.State.ACCEPTED, ended_at=timezone.now())
    membership = Membership.objects.create(tenant=row.tenant, user=by.person, role=row.role)
    pending_join_requests(row.tenant, by.person).update(state=JoinRequest.State.ACCEPTED, decided_at=timezone.now())
    after = {"user": row.email, "role": row.role}
    event = record(by, "invitation.accepted", row.tenant, tenant=row.tenant.slug, after=after)
    if row.invited_by is not None:
        subject = f"{by.name} now has the role {row.role} in {row.tenant.name}"
        deliver(event, [row.invited_by], subject=subject, body=page_url(f"/teams/{row.tenant.slug}/members"))
    hint_team_pages(row.tenant)
    return membership


@transaction.atomic
def decline_invitation(invitation_id: int, *, by: Actor) -> None:
    """Raises Refused: not_found (404), also for another address; already_decided (409)."""
    row = _invitation_of(by, invitation_id)
    move_state(Invitation, row.pk, to=Invitation.State.DECLINED, ended_at=timezone.now())
    record(by, "invitation.declined", row.tenant, tenant=row.tenant.slug, after={"user": row.email})


def _invitation_of(by: Actor, invitation_id: int) -> Invitation:
    rows = invitation_queries.own_invitations(by).select_related("tenant", "invited_by")
    return get_or_refuse(rows, pk=invitation_id)
