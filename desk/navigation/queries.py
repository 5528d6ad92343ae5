"""What every page shows of a person, in one query: teams, unread notices, the banner."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Exists, Subquery

from accounts.models import Role, User
from accounts.notices.queries import unread_count_of
from catalog.banner.queries import ActiveBanner, active_banners
from tenants.models import Deputy


@dataclass(frozen=True)
class PageFacts:
    teams: list[tuple[str, str]]  # slug and name of the user's own teams
    is_deputy: bool  # an approver's delegate now
    unread: int
    banner: ActiveBanner | None


def page_facts(user: User) -> PageFacts:
    """One query, and one more for users who ever were a delegate, or are in no team and no approver."""
    # Runs on every page: delegations in force are read only if there are any.
    named = Exists(Deputy.objects.filter(deputy=user, ended_at=None))
    unread = Subquery(unread_count_of(user.pk))
    banner = active_banners()
    text, until = Subquery(banner.values("text")[:1]), Subquery(banner.values("until")[:1])
    # From the user, because users without a team see the rest too.
    found = User.objects.filter(pk=user.pk).order_by("memberships__tenant__slug")
    shown = found.annotate(is_named=named, unread=unread, text=text, until=until)
    team = ("memberships__tenant__slug", "memberships__tenant__name")
    rows = list(shown.values_list(*team, "is_named", "unread", "text", "until"))
    if not rows:
        return PageFacts([], False, 0, None)
    _slug, _name, is_named, count, said, ends = rows[0]
    teams = [(slug, name) for slug, name, *_ in rows if slug is not None]
    may_be = is_named if teams else not user.has_role(Role.APPROVER)
    is_deputy = may_be and Deputy.objects.in_force().filter(deputy=user).exists()
    return PageFacts(teams, is_deputy, count or 0, ActiveBanner(said, ends) if said else None)
