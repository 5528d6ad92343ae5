"""Where a form's `next` may lead: to the portal's own address, and nowhere else that this process answers to."""

from __future__ import annotations

from urllib.parse import urlsplit

from django.conf import settings
from django.utils.http import url_has_allowed_host_and_scheme


def portal_hosts() -> set[str]:
    """The one host with its port that browsers know the portal by; ALLOWED_HOSTS may name more."""
    return {urlsplit(settings.PORTAL_URL).netloc}


def safe_redirect_target(wanted: str | None, *, otherwise: str) -> str:
    is_ours = url_has_allowed_host_and_scheme(wanted, allowed_hosts=portal_hosts(), require_https=settings.HTTPS)
    return wanted if wanted and is_ours else otherwise
