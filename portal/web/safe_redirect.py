"""The allowed targets of a form's `next`: only the portal's own address, no other host that this process serves."""

from __future__ import annotations

from urllib.parse import urlsplit

from django.conf import settings
from django.utils.http import url_has_allowed_host_and_scheme


def portal_hosts() -> set[str]:
    """The one host and port of the portal in browsers; ALLOWED_HOSTS may contain more."""
    return {urlsplit(settings.PORTAL_URL).netloc}


def safe_redirect_target(wanted: str | None, *, otherwise: str) -> str:
    is_ours = url_has_allowed_host_and_scheme(wanted, allowed_hosts=portal_hosts(), require_https=settings.HTTPS)
    return wanted if wanted and is_ours else otherwise
