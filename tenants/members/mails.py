"""Texts of mails about membership. Pure: values in, text out."""

from __future__ import annotations

from tenants.core.notifications import page_url
from tenants.models import Tenant


def role_notice(tenant: Tenant, role: str) -> tuple[str, str]:
    """Returns subject and body of the mail to a person with a new or changed role."""
    return f"Your role in {tenant.name} is now: {role}", page_url(f"/teams/{tenant.slug}")
