"""The team that the URL of a REST call names."""

from __future__ import annotations

from rest_framework.request import Request

from accounts.core.request_actor import actor
from portal.core.errors import get_or_refuse
from tenants.models import Tenant


def team_of_request(request: Request, slug: str) -> Tenant:
    """Looked up before the body is checked: a user outside the team gets not_found, whatever the body is."""
    return get_or_refuse(Tenant.objects.visible_to(actor(request)), slug=slug)
