"""Invitations and join requests: those that a person can answer, and those that a team's owners can answer."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Exists, OuterRef, Q, QuerySet

from accounts.core.actor import Actor
from accounts.models import User
from accounts.people.queries import verified_addresses
from tenants.models import Invitation, JoinRequest, Membership, Namespace, Tenant

RESULTS_MAX = 10
# A search for fewer letters would list all teams.
SEARCH_LETTERS_MIN = 2


@dataclass(frozen=True)
class InvitationRow:
    pk: int
    team: str
    role: str
    by: str
    expires_at: datetime


@dataclass(frozen=True)
class JoinRequestRow:
    """A join request as its requester sees it: pending, or declined with a reason."""

    pk: int
    team: str
    state: str
    asked_at: datetime
    reason: str


@dataclass(frozen=True)
class JoinableTeam:
    slug: str
    name: str
    purpose: str
    has_asked: bool


def own_invitations(by: Actor) -> QuerySet[Invitation]:
    """Finds invitations by the account's email address if it is verified; an unverified address finds none."""
    return Invitation.objects.filter(email=by.person.email, email__in=verified_addresses(by.user))


def invitations_for(by: Actor, *, at: datetime) -> list[InvitationRow]:
    """Returns pending invitations that have not expired, by the account's email address. One query."""
    rows = own_invitations(by).filter(state=Invitation.State.PENDING, expires_at__gt=at)
    return [
        InvitationRow(row.pk, row.tenant.name, row.role, row.invited_by.name if row.invited_by else "", row.expires_at)
        for row in rows.select_related("tenant", "invited_by")
    ]


def join_requests_of(by: Actor) -> list[JoinRequestRow]:
    """Returns pending or declined requests for teams that the person is not in, newest first, at most 10. One query."""
    states = (JoinRequest.State.PENDING, JoinRequest.State.DECLINED)
    rows = JoinRequest.objects.filter(user=by.user, state__in=states).exclude(tenant__memberships__user=by.user)
    return [
        JoinRequestRow(row.pk, row.tenant.name, row.state, row.asked_at, row.reason)
        for row in rows.select_related("tenant").order_by("-id")[:RESULTS_MAX]
    ]


def joinable_teams(by: Actor, text: str) -> list[JoinableTeam]:
    """Returns teams with this text in their name that the person could request to join, by name; none for fewer than
    two letters. One query. Outside a team a person sees only its name and purpose.
    """
    text = " ".join(text.split())
    if len(text) < SEARCH_LETTERS_MIN:
        return []
    asked = JoinRequest.objects.filter(tenant=OuterRef("pk"), user=by.user, state=JoinRequest.State.PENDING)
    rows = (
        Tenant.objects.filter(Q(name__icontains=text) | Q(slug__icontains=text))
        .exclude(memberships__user=by.user)
        .exclude(namespaces__wanted=Namespace.Wanted.CLOSED)
        .annotate(has_asked=Exists(asked))
    )
    return [JoinableTeam(row.slug, row.name, row.purpose, row.has_asked) for row in rows.order_by("name")[:RESULTS_MAX]]


@dataclass(frozen=True)
class PendingMembers:
    """What the owners of a team can answer or revoke."""

    joins: list[JoinRequest]
    invitations: list[Invitation]


def pending_members(tenant: Tenant) -> PendingMembers:
    """Two queries."""
    joins = JoinRequest.objects.filter(tenant=tenant, state=JoinRequest.State.PENDING).select_related("user")
    invitations = Invitation.objects.filter(tenant=tenant, state=Invitation.State.PENDING).order_by("email")
    return PendingMembers(list(joins), list(invitations))


def teams_without_owner() -> list[Tenant]:
    """Returns active teams without an owner whose account is active: nobody can accept join requests. One query."""
    # Few accounts are suspended: excluding these costs half as much as joining the accounts of all owners.
    suspended = User.objects.filter(is_active=False)
    owners = Membership.objects.filter(tenant=OuterRef("pk"), role=Membership.Role.OWNER).exclude(user__in=suspended)
    rows = Tenant.objects.exclude(namespaces__wanted=Namespace.Wanted.CLOSED)
    return list(rows.filter(~Exists(owners)).order_by("slug"))


def pending_invitations(email: str) -> QuerySet[Invitation]:
    return Invitation.objects.filter(email=email, state=Invitation.State.PENDING)


def pending_join_requests(tenant: Tenant, user: User) -> QuerySet[JoinRequest]:
    return JoinRequest.objects.filter(tenant=tenant, user=user, state=JoinRequest.State.PENDING)
