"""Who is in a team: the verbs by which people come, change their role and go."""

from __future__ import annotations

from datetime import timedelta

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from accounts.actions import deliver, deliver_to_address, end_token, record
from accounts.actor import Actor
from accounts.models import User
from accounts.policy import address_refusal
from accounts.queries import at_verified_address, tokens_of_team
from cluster.models import MirrorJob
from portal.due import wake_owners
from portal.errors import NOT_FOUND, Refused, get_or_refuse, refuse_if
from portal.transitions import move
from tenants import policy, queries
from tenants.models import Invitation, JoinRequest, Membership, Tenant
from tenants.queries import joining
from tenants.telling import address, hint_pages

INVITATION_LIFE = timedelta(days=30)


# ---- by owners and managers --------------------------------------------------------------------------------------


@transaction.atomic
def add_member(tenant_slug: str, *, email: str, role: str, by: Actor) -> Membership | Invitation:
    """A person with an account is a member at once; any other address is invited, and told how to come.

    Raises Refused: not_found (404), not_allowed (403), unknown_role, bad_address (422), already_member,
    already_invited, suspended (409).
    """
    tenant = get_or_refuse(Tenant.objects.visible_to(by), slug=tenant_slug)
    standing = queries.standing(by, tenant)
    refuse_if(policy.may_manage_members(by, standing))
    refuse_if(policy.may_give_role(by, standing, role))
    email = email.strip().lower()
    user = at_verified_address(email)
    if user is None:
        return _invite(tenant, email, role, by)
    refuse_if(policy.may_be_added(email, is_active=user.is_active))
    return _placed(tenant, user, role, by)


def _placed(tenant: Tenant, user: User, role: str, by: Actor, *, by_group: bool = False) -> Membership:
    membership = Membership.objects.create(tenant=tenant, user=user, role=role, by_group=by_group)
    event = record(by, "member.added", tenant, tenant=tenant.slug, after={"user": user.email, "role": role})
    # Who asked as well, or was invited before the account was made, has the answer.
    answer = {"state": JoinRequest.State.ACCEPTED, "decided_by": by.user, "decided_at": timezone.now()}
    _pending_joins(tenant, user).update(**answer)
    at_their_address = _pending_invitations(user.email).filter(tenant=tenant)
    at_their_address.update(state=Invitation.State.ACCEPTED, ended_at=timezone.now())
    deliver(event, [user], subject=f"You are {role} of {tenant.name}", body=address(f"/teams/{tenant.slug}"))
    hint_pages(tenant)
    return membership


def _invite(tenant: Tenant, email: str, role: str, by: Actor) -> Invitation:
    refuse_if(address_refusal(email))
    now = timezone.now()
    # One that has lapsed makes room for the new one.
    _pending_invitations(email).filter(tenant=tenant, expires_at__lte=now).update(
        state=Invitation.State.REVOKED, ended_at=now
    )
    row = Invitation.objects.create(
        tenant=tenant, email=email, role=role, invited_by=by.user, expires_at=now + INVITATION_LIFE
    )
    event = record(by, "member.invited", row, tenant=tenant.slug, after={"user": email, "role": role})
    until = f"{row.expires_at:%d %b %Y}"
    text = (
        f"{by.name} invites you to {tenant.name} as {role}. Sign in with this address until {until} and accept; if you "
        "have no account yet, ask for one where you work.\n\n"
    )
    deliver_to_address(event, email, subject=f"Invitation to {tenant.name}", body=text + address("/start"))
    return row


@transaction.atomic
def revoke_invitation(tenant_slug: str, invitation_id: int, *, by: Actor) -> None:
    """Raises Refused: not_found (404), not_allowed (403), already_decided (409)."""
    tenant = get_or_refuse(Tenant.objects.visible_to(by), slug=tenant_slug)
    refuse_if(policy.may_manage_members(by, queries.standing(by, tenant)))
    row = get_or_refuse(Invitation.objects.filter(tenant=tenant), pk=invitation_id)
    move(Invitation, row.pk, to=Invitation.State.REVOKED, ended_at=timezone.now())
    record(by, "invitation.revoked", row, tenant=tenant.slug, before={"user": row.email, "role": row.role})


@transaction.atomic
def set_role(tenant_slug: str, *, user_id: int, role: str, by: Actor) -> Membership:
    """The same role again changes nothing. Raises Refused: not_found (404), not_allowed (403), unknown_role (422),
    last_owner (409).
    """
    tenant, members = _locked(tenant_slug, by)
    member = _among(members, user_id)
    standing = queries.standing(by, tenant)
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
    deliver(event, [member.user], subject=f"You are {role} of {tenant.name}", body=address(f"/teams/{tenant.slug}"))
    hint_pages(tenant)
    _wake_work(tenant)
    return member


@transaction.atomic
def place_by_group(tenant_slug: str, user: User, *, role: str, by: Actor) -> None:
    """A group of the issuer gives this role. Somebody who was let in by hand keeps what they were given.

    Raises Refused: not_found (404), unknown_role (422), last_owner (409).
    """
    tenant, rows = _locked(tenant_slug, by)
    held = next((row for row in rows if row.user_id == user.pk), None)
    if held is None:
        refuse_if(policy.may_give_role(by, queries.standing(by, tenant), role))
        _placed(tenant, user, role, by, by_group=True)
    elif held.by_group:
        set_role(tenant_slug, user_id=user.pk, role=role, by=by)


@transaction.atomic
def remove_member(tenant_slug: str, *, user_id: int, by: Actor) -> None:
    """The tokens that the person made of the team end, too.

    Raises Refused: not_found (404), not_allowed (403), last_owner (409).
    """
    tenant, members = _locked(tenant_slug, by)
    gone = _among(members, user_id)
    refuse_if(
        policy.may_remove_member(
            by,
            queries.standing(by, tenant),
            role=gone.role,
            is_self=by.user_id == user_id,
            owners=_owners(members),
        )
    )
    email = gone.user.email
    gone.delete()
    record(by, "member.removed", tenant, tenant=tenant.slug, before={"user": email, "role": gone.role})
    for token in tokens_of_team(tenant.slug).filter(user=user_id):
        end_token(token, by=by)
    hint_pages(tenant)
    _wake_work(tenant)


@transaction.atomic
def answer_join(
    tenant_slug: str, join_id: int, *, accept: bool, role: str = "member", reason: str = "", by: Actor
) -> JoinRequest:
    """Raises Refused: not_found (404), not_allowed (403), already_decided, already_member (409), unknown_role,
    reason_missing (422).
    """
    tenant = get_or_refuse(Tenant.objects.visible_to(by), slug=tenant_slug)
    standing = queries.standing(by, tenant)
    refuse_if(policy.may_manage_members(by, standing))
    row = get_or_refuse(JoinRequest.objects.filter(tenant=tenant).select_related("user"), pk=join_id)
    reason = " ".join(reason.split())
    refuse_if(policy.may_answer_join(by, standing, accept=accept, role=role, reason=reason))
    to = JoinRequest.State.ACCEPTED if accept else JoinRequest.State.DECLINED
    move(JoinRequest, row.pk, to=to, decided_by=by.user, decided_at=timezone.now(), reason=reason)
    if accept:
        Membership.objects.create(tenant=tenant, user=row.user, role=role)
    after = {"user": row.user.email, "accepted": accept, **({"role": role} if accept else {"reason": reason})}
    event = record(by, "join.answered", tenant, tenant=tenant.slug, after=after)
    if accept:
        subject, body = f"You are {role} of {tenant.name}", address(f"/teams/{tenant.slug}")
    else:
        subject, body = f"{tenant.name} did not let you in", f"{reason}\n\n" + address("/start")
    deliver(event, [row.user], subject=subject, body=body)
    hint_pages(tenant)
    row.refresh_from_db()
    return row


# ---- by those who come -------------------------------------------------------------------------------------------


@transaction.atomic
def ask_to_join(tenant_slug: str, *, message: str, by: Actor) -> JoinRequest:
    """Its owners and managers are told. Raises Refused: not_found (404), already_member, already_asked, closed (409),
    bad_message (422).
    """
    tenant = get_or_refuse(Tenant.objects.all(), slug=tenant_slug)
    message = " ".join(message.split())
    refuse_if(policy.may_ask_to_join(by, queries.standing(by, tenant), message=message))
    row = JoinRequest.objects.create(tenant=tenant, user=by.person, message=message)
    event = record(by, "join.asked", tenant, tenant=tenant.slug, after={"user": by.person.email, "message": message})
    told = f"{message}\n\n" if message else ""
    body = told + address(f"/teams/{tenant.slug}/members")
    deliver(event, queries.managers_of(tenant), subject=f"{by.name} asks to join {tenant.name}", body=body)
    hint_pages(tenant)
    return row


@transaction.atomic
def withdraw_join(join_id: int, *, by: Actor) -> None:
    """Raises Refused: not_found (404), also for somebody else's; already_decided (409)."""
    row = get_or_refuse(JoinRequest.objects.filter(user=by.user).select_related("tenant"), pk=join_id)
    move(JoinRequest, row.pk, to=JoinRequest.State.WITHDRAWN, decided_at=timezone.now())
    record(by, "join.withdrawn", row.tenant, tenant=row.tenant.slug, after={"user": by.person.email})


@transaction.atomic
def accept_invitation(invitation_id: int, *, by: Actor) -> Membership:
    """Raises Refused: not_found (404), also for another address; already_decided, lapsed, already_member (409)."""
    row = _invitation_of(by, invitation_id)
    refuse_if(policy.may_accept_invitation(expires_at=row.expires_at, now=timezone.now()))
    move(Invitation, row.pk, to=Invitation.State.ACCEPTED, ended_at=timezone.now())
    membership = Membership.objects.create(tenant=row.tenant, user=by.person, role=row.role)
    _pending_joins(row.tenant, by.person).update(state=JoinRequest.State.ACCEPTED, decided_at=timezone.now())
    after = {"user": row.email, "role": row.role}
    event = record(by, "invitation.accepted", row.tenant, tenant=row.tenant.slug, after=after)
    if row.invited_by is not None:
        subject = f"{by.name} is {row.role} of {row.tenant.name} now"
        deliver(event, [row.invited_by], subject=subject, body=address(f"/teams/{row.tenant.slug}/members"))
    hint_pages(row.tenant)
    return membership


@transaction.atomic
def decline_invitation(invitation_id: int, *, by: Actor) -> None:
    """Raises Refused: not_found (404), also for another address; already_decided (409)."""
    row = _invitation_of(by, invitation_id)
    move(Invitation, row.pk, to=Invitation.State.DECLINED, ended_at=timezone.now())
    record(by, "invitation.declined", row.tenant, tenant=row.tenant.slug, after={"user": row.email})


# ---- parts -------------------------------------------------------------------------------------------------------


def _invitation_of(by: Actor, invitation_id: int) -> Invitation:
    rows = joining.own_invitations(by).select_related("tenant", "invited_by")
    return get_or_refuse(rows, pk=invitation_id)


def _pending_invitations(email: str) -> QuerySet[Invitation]:
    return Invitation.objects.filter(email=email, state=Invitation.State.PENDING)


def _pending_joins(tenant: Tenant, user: User) -> QuerySet[JoinRequest]:
    return JoinRequest.objects.filter(tenant=tenant, user=user, state=JoinRequest.State.PENDING)


def _locked(tenant_slug: str, by: Actor) -> tuple[Tenant, list[Membership]]:
    """Its members locked together and in order: two owners who leave at once must not both be "not the last one"."""
    tenant = get_or_refuse(Tenant.objects.visible_to(by), slug=tenant_slug)
    rows = Membership.objects.select_for_update(of=("self",)).filter(tenant=tenant).select_related("user")
    return tenant, list(rows.order_by("pk"))


def _among(members: list[Membership], user_id: int) -> Membership:
    found = next((member for member in members if member.user_id == user_id), None)
    if found is None:
        raise Refused(NOT_FOUND)
    return found


def _wake_work(tenant: Tenant) -> None:
    """Whatever has a Job in the team looks again: a notebook ends with its person's right to run it."""
    for cluster_id, name in tenant.namespaces.values_list("cluster_id", "name"):
        jobs = MirrorJob.objects.filter(cluster_id=cluster_id, namespace=name)
        wake_owners(set(jobs.values_list("owner", flat=True)))


def _owners(members: list[Membership]) -> int:
    return sum(member.role == Membership.Role.OWNER for member in members)
