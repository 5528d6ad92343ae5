"""How people are notified of a change of their team: the URL in a mail, and the hint to open pages."""

from __future__ import annotations

from django.conf import settings

from portal.core.hints import page_hint
from tenants.models import Tenant


def page_url(path: str) -> str:
    return f"{settings.PORTAL_URL}{path}"


def hint_team_pages(tenant: Tenant) -> None:
    """Updates open pages of the team after commit. One query."""
    for name in tenant.namespaces.values_list("name", flat=True):
        page_hint(name)
