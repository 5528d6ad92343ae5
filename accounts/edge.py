"""From a request to an Actor: what every view and API view hands to actions and queries as `by`."""

from __future__ import annotations

import ipaddress
import time

from allauth.account.authentication import get_authentication_records
from django.conf import settings
from django.http import HttpRequest
from rest_framework.request import Request

from accounts import queries
from accounts.actor import ALL_SCOPES, Actor, with_token
from accounts.models import ApiToken, Role, User
from portal.errors import NOT_FOUND, NOT_SIGNED_IN, Refused

# In allauth's list of what a session has shown: a sign-in by the issuer of single sign-on.
BY_ISSUER = "oidc"
LATELY_S = 15 * 60


def actor(request: HttpRequest | Request) -> Actor:
    """Who asks, through which door, with which scopes. Raises Refused (401) when nobody is signed in."""
    user = request.user
    if not isinstance(user, User):
        # Pages have a lazy wrapper, which passes this test through; nobody at all is None or AnonymousUser.
        raise Refused(NOT_SIGNED_IN)
    token = getattr(request, "auth", None)
    request_id = getattr(request, "request_id", "")
    if isinstance(token, ApiToken):
        return with_token(token, request_id=request_id)
    return Actor(user=user, via="page", scopes=ALL_SCOPES, request_id=request_id)


def operator(request: HttpRequest | Request) -> Actor:
    """For pages and calls of operators and admins, which are not there for others. Raises Refused (404)."""
    by = actor(request)
    if not by.operates:
        raise Refused(NOT_FOUND)
    return by


def administrator(request: HttpRequest | Request) -> Actor:
    """The same for administrators alone."""
    by = actor(request)
    if not by.has_role(Role.ADMIN):
        raise Refused(NOT_FOUND)
    return by


def showed_second_factor(request: HttpRequest) -> bool:
    """This session has shown a second factor of its person that is still theirs. One query if it has shown any."""
    if not isinstance(request.user, User):
        return False
    records = get_authentication_records(request, request.user)
    shown = [record["id"] for record in records if record["method"] == "mfa"]
    return queries.holds_any(request.user, shown)


def signed_in_lately(request: HttpRequest) -> bool:
    """By the issuer, in this session and a moment ago: what people without a password have to show instead of one."""
    records = get_authentication_records(request, request.user) if isinstance(request.user, User) else []
    return any(record["method"] == BY_ISSUER and record["at"] > time.time() - LATELY_S for record in records)


def client_address(request: HttpRequest) -> str:
    """The person's address as the gateway saw it. Anybody else's X-Forwarded-For is a claim and ignored."""
    peer: str = request.META.get("REMOTE_ADDR", "")
    forwarded = [part.strip() for part in request.META.get("HTTP_X_FORWARDED_FOR", "").split(",")]
    return forwarded[-1] if forwarded[-1] and _is_gateway(peer) else peer


def _is_gateway(peer: str) -> bool:
    try:
        address = ipaddress.ip_address(peer)
    except ValueError:
        return peer == ""  # a Unix socket: only the gateway can reach it
    return any(address in network for network in settings.TRUSTED_PROXIES)
