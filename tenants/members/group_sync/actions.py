"""Memberships of teams and staff roles that a person's groups of the OIDC issuer give, at each sign-in.

What people gave by hand only people remove: groups neither change nor end it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial

import structlog
from django.conf import settings
from django.db import IntegrityError, transaction

from accounts.models import User
from accounts.sign_in.oidc import actions as oidc_actions
from portal.core.errors import Refused
from portal.core.single_sign_on import TEAM_ROLES, GroupMapping
from tenants.members import actions as member_actions
from tenants.models import Membership, Tenant

log = structlog.get_logger(__name__)


def sync_groups(user: User, groups: Collection[str]) -> None:
    """Each change is atomic by itself: a refused one, such as removing the last owner, is logged and does not prevent
    the sign-in.
    """
    if settings.OIDC is None or not settings.OIDC.groups:
        return
    teams, roles = places_of_groups(groups, settings.OIDC.groups)
    held = {row.tenant.slug: row for row in Membership.objects.filter(user=user).select_related("tenant")}
    there = set(Tenant.objects.filter(slug__in=teams).values_list("slug", flat=True))
    for slug in sorted(set(teams) - there):
        log.warning("oidc_group_of_no_team", team=slug)
    # Removals come first: between two changes a person has too few rights rather than too many.
    for slug, row in held.items():
        if row.by_group and slug not in teams:
            _apply_change(
                user, slug, partial(member_actions.remove_member, slug, user_id=user.pk, by=oidc_actions.OIDC_RULE)
            )
    _apply_change(user, "", partial(oidc_actions.set_group_roles, user.pk, roles))
    for slug in sorted(there):
        _apply_change(
            user, slug, partial(member_actions.place_by_group, slug, user, role=teams[slug], by=oidc_actions.OIDC_RULE)
        )


def places_of_groups(groups: Collection[str], known: Mapping[str, GroupMapping]) -> tuple[dict[str, str], set[str]]:
    """Returns team → role, the highest if several groups give one, and the staff roles. Pure."""
    teams: dict[str, str] = {}
    roles: set[str] = set()
    for group in groups:
        if (gives := known.get(group)) is None:
            continue
        roles |= gives.roles
        for slug, role in gives.teams.items():
            teams[slug] = min(role, teams.get(slug, role), key=TEAM_ROLES.index)
    return teams, roles


def _apply_change(user: User, team: str, change: Callable[[], object]) -> None:
    try:
        with transaction.atomic():
            change()
    except (Refused, IntegrityError) as error:  # the second: of two sign-ins at once
        log.warning("oidc_group_refused", user=user.pk, team=team, code=getattr(error, "code", "done_meanwhile"))
