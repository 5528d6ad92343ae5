"""Tokens of a team: its owners and managers create them; each token acts as its creator within that team alone."""

from __future__ import annotations

from collections.abc import Collection

from django.db import transaction

from accounts.api_tokens import actions
from accounts.api_tokens import queries as accounts
from accounts.core.actor import Actor
from accounts.models import ApiToken
from portal.core.errors import get_or_refuse, refuse_if
from tenants.members import queries
from tenants.members.tokens import policy as token_policy
from tenants.models import Membership, Tenant


@transaction.atomic
def create_team_token(
    slug: str, *, name: str, scopes: Collection[str], expires_in_days: int, by: Actor
) -> tuple[ApiToken, str]:
    """Like accounts.api_tokens.actions.create_token, which records the event.

    Raises Refused: not_found (404), not_allowed (403) and what create_token raises.
    """
    rows = Tenant.objects.visible_to(by).select_for_update(of=("self",), no_key=True)  # the number is a rule
    team = get_or_refuse(rows, slug=slug)
    # A person who is removed from the team at this moment must not leave a token behind.
    list(Membership.objects.of(by).select_for_update(of=("self",)).filter(tenant=team))
    refuse_if(token_policy.may_create_team_token(by, queries.standing_of(by, team)))
    return actions.create_token(name=name, scopes=scopes, expires_in_days=expires_in_days, tenant=team.slug, by=by)


@transaction.atomic
def revoke_team_token(slug: str, prefix: str, *, by: Actor) -> ApiToken:
    """Revokes anyone's token. Raises Refused: not_found (404), also if already revoked; not_allowed (403)."""
    team = get_or_refuse(Tenant.objects.visible_to(by), slug=slug)
    refuse_if(token_policy.may_revoke_team_token(by, queries.standing_of(by, team)))
    token = get_or_refuse(accounts.tokens_of_team(team.slug).select_for_update(of=("self",)), prefix=prefix)
    actions.end_token(token, by=by)
    return token
