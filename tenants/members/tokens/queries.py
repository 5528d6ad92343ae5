"""The tokens of a team, for users who may see them."""

from __future__ import annotations

from django.db.models import QuerySet

from accounts.api_tokens import queries as api_token_queries
from accounts.core.actor import Actor
from accounts.models import ApiToken
from portal.core.errors import get_or_refuse, refuse_if
from tenants.members import queries as member_queries
from tenants.members.tokens import policy as token_policy
from tenants.models import Tenant


def team_with_tokens(slug: str, *, by: Actor) -> tuple[Tenant, QuerySet[ApiToken]]:
    """Raises Refused: not_found (404), not_allowed (403)."""
    team = get_or_refuse(Tenant.objects.visible_to(by), slug=slug)
    refuse_if(token_policy.may_see_team_tokens(by, member_queries.standing_of(by, team)))
    return team, api_token_queries.tokens_of_team(team.slug)
