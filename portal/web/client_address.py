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
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv4Address):
        return str(parsed)
    if parsed.ipv4_mapped:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.ip_network((parsed.packed, 64), strict=False))


def _is_gateway(peer: str) -> bool:
    try:
        address = ipaddress.ip_address(peer)
    except ValueError:
        return peer == ""  # a Unix socket: only the gateway can reach it
    return any(address in network for network in settings.TRUSTED_PROXIES)
