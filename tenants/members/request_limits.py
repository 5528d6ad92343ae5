"""The middleware that counts pages, with what it cannot know below: who is in a team."""

from __future__ import annotations

from accounts.models import User
from accounts.rest.throttles import RequestLimitMiddleware
from tenants.models import Membership


class TeamRequestLimitMiddleware(RequestLimitMiddleware):
    def is_member(self, user: User, slug: str) -> bool:
        return Membership.objects.filter(user=user, tenant__slug=slug).exists()
