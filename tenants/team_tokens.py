"""Tokens of a team: made by its owners and managers, each acts as its maker within the team and nowhere else."""

from __future__ import annotations

from collections.abc import Collection

from django.db import transaction
from django.db.models import QuerySet

from accounts import actions
from accounts import queries as accounts
from accounts.actor import Actor
from accounts.models import ApiToken
from portal.errors import get_or_refuse, refuse_if
from tenants import queries, token_policy
from tenants.models import Membership, Tenant


def tokens_of(slug: str, *, by: Actor) -> tuple[Tenant, QuerySet[ApiToken]]:
    """Raises Refused: not_found (404), not_allowed (403)."""
    team = get_or_refuse(Tenant.objects.visible_to(by), slug=slug)
    refuse_if(token_policy.may_see(by, queries.standing(by, team)))
    return team, accounts.tokens_of_team(team.slug)


@transaction.atomic
def create(slug: str, *, name: str, scopes: Collection[str], expires_in_days: int, by: Actor) -> tuple[ApiToken, str]:
    """As accounts.actions.create_token, which records it. Raises Refused: not_found (404), not_allowed (403) and what
    that raises.
    """
    rows = Tenant.objects.visible_to(by).select_for_update(of=("self",), no_key=True)  # the number is a rule
    team = get_or_refuse(rows, slug=slug)
    # Whoever is put out of the team at this moment leaves no token behind.
    list(Membership.objects.of(by).select_for_update(of=("self",)).filter(tenant=team))
    refuse_if(token_policy.may_make(by, queries.standing(by, team)))
    return actions.create_token(name=name, scopes=scopes, expires_in_days=expires_in_days, tenant=team.slug, by=by)


@transaction.atomic
def revoke(slug: str, prefix: str, *, by: Actor) -> ApiToken:
    """Whoever made it. Raises Refused: not_found (404), also when it was revoked before; not_allowed (403)."""
    team = get_or_refuse(Tenant.objects.visible_to(by), slug=slug)
    refuse_if(token_policy.may_revoke(by, queries.standing(by, team)))
    token = get_or_refuse(accounts.tokens_of_team(team.slug).select_for_update(of=("self",)), prefix=prefix)
    actions.end_token(token, by=by)
    return token
