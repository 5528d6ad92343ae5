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


def network_of(address: str) -> str:
    """The network that one machine may use freely: an IPv4 address, or an IPv6 /64. Other text stays as it is."""
    try:
        parsed = _parsed(address)
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv4Address):
        return str(parsed)
    return str(ipaddress.ip_network((parsed.packed, 64), strict=False))


def _is_gateway(peer: str) -> bool:
    try:
        address = _parsed(peer)
    except ValueError:
        return peer == ""  # a Unix socket: only the gateway can reach it
    return any(address in network for network in settings.TRUSTED_PROXIES)


def _parsed(address: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """A socket for both protocols shows an IPv4 address as ::ffff:192.0.2.1. Raises ValueError."""
    parsed = ipaddress.ip_address(address)
    return getattr(parsed, "ipv4_mapped", None) or parsed
