"""Authentication of API calls: by a token (Bearer), or by the browser's session with CSRF protection."""

from __future__ import annotations

from datetime import timedelta

from django.db.models import Q
from django.utils import timezone
from rest_framework import authentication, exceptions
from rest_framework.request import Request

from accounts.api_tokens import queries
from accounts.models import ApiToken, User
from portal.core.errors import Refusal, Refused

LAST_USED_STEP = timedelta(minutes=1)
CSRF_REFUSED = Refusal(
    "csrf",
    "Session requests need the value of the CSRF cookie in the X-CSRFToken header. Scripts use a token instead.",
    status=403,
)


class TokenAuthentication(authentication.BaseAuthentication):
    """`Authorization: Bearer gpt_…`. A wrong, expired or revoked token or a suspended user is refused, not ignored."""

    def authenticate(self, request: Request) -> tuple[User, ApiToken] | None:
        scheme, _, text = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer":
            return None
        token = queries.authenticate_token(text.strip())
        stamp_last_used(token)
        return token.user, token

    def authenticate_header(self, request: Request) -> str:
        return "Bearer"


class SessionAuthentication(authentication.SessionAuthentication):
    """The session of the portal's pages: user of the session, no token, CSRF check for every write."""

    def enforce_csrf(self, request: Request) -> None:
        try:
            super().enforce_csrf(request)
        except exceptions.PermissionDenied as error:
            raise Refused(CSRF_REFUSED) from error


def stamp_last_used(token: ApiToken) -> None:
    """Sets `last_used_at` at most once a minute, so that a busy CI does not write a row with every request."""
    before = timezone.now() - LAST_USED_STEP
    if token.last_used_at is None or token.last_used_at < before:
        not_lately = Q(last_used_at=None) | Q(last_used_at__lt=before)
        ApiToken.objects.filter(not_lately, pk=token.pk).update(last_used_at=timezone.now())
