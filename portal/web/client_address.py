"""The address that a request came from, as the gateway saw it."""

from __future__ import annotations

import ipaddress

from django.conf import settings
from django.http import HttpRequest


def client_address(request: HttpRequest) -> str:
    """The client's address as the gateway saw it. X-Forwarded-For is ignored unless it comes from the gateway."""
    peer: str = request.META.get("REMOTE_ADDR", "")
    forwarded = [part.strip() for part in request.META.get("HTTP_X_FORWARDED_FOR", "").split(",")]
    return forwarded[-1] if forwarded[-1] and _is_gateway(peer) else peer


def _is_gateway(peer: str) -> bool:
    try:
        address = ipaddress.ip_address(peer)
    except ValueError:
        return peer == ""  # a Unix socket: only the gateway can reach it
    return any(address in network for network in settings.TRUSTED_PROXIES)
