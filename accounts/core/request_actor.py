"""Makes the Actor of a request, which every view passes to actions and queries as `by`."""

from __future__ import annotations

from django.http import HttpRequest
from rest_framework.request import Request

from accounts.core.actor import ALL_SCOPES, Actor, actor_of_token
from accounts.core.policy import SECOND_FACTOR_NEEDED
from accounts.core.second_factor import showed_second_factor
from accounts.models import ApiToken, Role, User
from portal.core.errors import NOT_FOUND, NOT_SIGNED_IN, Refused


def actor(request: HttpRequest | Request) -> Actor:
    """Returns user, channel and scopes of the request. Raises Refused (401) when no user is signed in."""
    user = request.user
    if not isinstance(user, User):
        # On pages, request.user is a lazy wrapper, and this test works on it. Without a user it is None or
        # AnonymousUser.
        raise Refused(NOT_SIGNED_IN)
    token = getattr(request, "auth", None)
    request_id = getattr(request, "request_id", "")
    if isinstance(token, ApiToken):
        return actor_of_token(token, request_id=request_id)
    return Actor(user=user, via="page", scopes=ALL_SCOPES, request_id=request_id)


def operator(request: HttpRequest | Request) -> Actor:
    """For pages and calls of operators and admins. Raises Refused (404) for all others."""
    by = actor(request)
    if not by.operates:
        raise Refused(NOT_FOUND)
    return by


def staff(request: HttpRequest | Request) -> Actor:
    """The same for operators, administrators and auditors, who see what all teams use."""
    by = actor(request)
    if not by.oversees:
        raise Refused(NOT_FOUND)
    return by


def administrator(request: HttpRequest | Request) -> Actor:
    """The same for administrators only, with a second factor. Raises Refused: not_found, second_factor_needed (403)."""
    by = actor(request)
    if not by.has_role(Role.ADMIN):
        raise Refused(NOT_FOUND)
    refuse_without_second_factor(request)
    return by


def refuse_without_second_factor(request: HttpRequest | Request) -> None:
    """A session has to have passed a second factor; the owner of a token has to have one. Raises Refused:
    second_factor_needed (403).
    """
    if not has_second_factor(request):
        raise Refused(SECOND_FACTOR_NEEDED)


def has_second_factor(request: HttpRequest | Request) -> bool:
    token = getattr(request, "auth", None)
    return token.owner_has_second_factor if isinstance(token, ApiToken) else showed_second_factor(request)
