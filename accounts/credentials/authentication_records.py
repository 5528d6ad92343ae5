"""How a session was authenticated, as recorded by allauth: by a second factor, by the issuer."""

from __future__ import annotations

import time

from allauth.account.authentication import get_authentication_records
from django.http import HttpRequest

from accounts.credentials import queries as credential_queries
from accounts.models import User

# The method in allauth's records of a session for a sign-in by the single sign-on issuer.
BY_ISSUER = "oidc"

RECENTLY_S = 15 * 60


def showed_second_factor(request: HttpRequest) -> bool:
    """Whether this session has passed a second factor that its user still has. One query if it has passed any."""
    if not isinstance(request.user, User):
        return False
    records = get_authentication_records(request, request.user)
    shown = [record["id"] for record in records if record["method"] == "mfa"]
    return credential_queries.holds_any_factor(request.user, shown)


def signed_in_recently(request: HttpRequest) -> bool:
    """Whether the issuer signed the user in, in this session, a moment ago. It replaces the password of users without
    one.
    """
    records = get_authentication_records(request, request.user) if isinstance(request.user, User) else []
    return any(record["method"] == BY_ISSUER and record["at"] > time.time() - RECENTLY_S for record in records)
