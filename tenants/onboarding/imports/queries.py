"""What exists already of what a plan says, in words: whether it is the same, or how it differs."""

from __future__ import annotations

from django.db.models import F
from django.utils import timezone

from accounts.people.queries import user_at_verified_address
from catalog.models import GpuClass
from cluster.reads import queries as read_queries
from tenants.grants.types import ClassFacts
from tenants.members.invitations.queries import pending_invitations
from tenants.models import Grant, Invitation, Membership, Tenant
from tenants.onboarding.imports.types import ImportedGrant, ImportedMember, ImportedTeam, Outcome

Standing = tuple[Outcome, str]


def class_slugs() -> list[str]:
    """Of all classes of the cluster. One query."""
    rows = GpuClass.objects.filter(cluster=read_queries.current_cluster())
    return list(rows.order_by("slug").values_list("slug", flat=True))


def standing_team(row: ImportedTeam) -> Standing | None:
    """None: no such team."""
    team = Tenant.objects.filter(slug=row.slug).first()
    if team is None:
        return None
    if team.name != row.name:
        return Outcome.DIFFERS, f"The team exists with the name '{team.name}', not '{row.name}'. Not changed."
    return Outcome.EXISTS, "The team exists."


def standing_member(row: ImportedMember, team: Tenant) -> Standing | None:
    """None: neither a member nor invited."""
    user = user_at_verified_address(row.person.email)
    member = Membership.objects.filter(tenant=team, user=user).first() if user else None
    if member is not None:
        return _role(row, member.role, "The person is in the team with the role")
    invited = pending_invitations(row.person.email).filter(tenant=team, expires_at__gt=timezone.now()).first()
    if invited is not None:
        return _role(row, invited.role, "The person is invited with the role")
    ended = Invitation.objects.filter(tenant=team, email=row.person.email, ended_at__lt=F("expires_at"))
    ended = ended.filter(state__in=(Invitation.State.DECLINED, Invitation.State.REVOKED))
    if (last := ended.last()) is not None:
        return Outcome.DIFFERS, f"An invitation of this person to the team was {last.state}. Not invited again."
    return None


def _role(row: ImportedMember, role: str, text: str) -> Standing:
    if role == row.role:
        return Outcome.EXISTS, f"{text} {role}."
    return Outcome.DIFFERS, f"{text} {role}, not {row.role}. Not changed: change it on the team's page Members."


def standing_grant(row: ImportedGrant, team: Tenant, facts: ClassFacts, class_id: int) -> Standing | None:
    """None: the team has no total of this class, now or later."""
    now = timezone.now()
    rows = Grant.objects.filter(tenant=team, gpu_class=class_id, kind=Grant.Kind.BASE, period__endswith__gt=now)
    found = list(rows.order_by("period"))
    if not found:
        return None
    if [(one.units, one.period.upper) for one in found] == [(row.units, row.ends)]:
        return Outcome.EXISTS, f"The team has {row.units} of {facts.name} until {row.until}."
    held = ", then ".join(f"{one.units} until {timezone.localdate(one.period.upper)}" for one in found)
    text = f"The team has {held} of {facts.name}, not {row.units} until {row.until}. Not changed: request a new total."
    return Outcome.DIFFERS, text


def first_account(row: ImportedTeam) -> int | None:
    """Index of the first owner with an account."""
    found = (at for at, owner in enumerate(row.owners) if user_at_verified_address(owner.email))
    return next(found, None)
