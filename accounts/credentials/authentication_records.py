"""By what a session was authenticated, as allauth records it: a second factor, a sign-in by the issuer."""

from __future__ import annotations

import time

from allauth.account.authentication import get_authentication_records
from django.http import HttpRequest

from accounts.credentials import queries as credential_queries
from accounts.models import User

# In allauth's list of what a session has shown: a sign-in by the issuer of single sign-on.
BY_ISSUER = "oidc"

RECENTLY_S = 15 * 60


def showed_second_factor(request: HttpRequest) -> bool:
    """This session has shown a second factor of its person that is still theirs. One query if it has shown any."""
    if not isinstance(request.user, User):
        return False
    records = get_authentication_records(request, request.user)
    shown = [record["id"] for record in records if record["method"] == "mfa"]
    return credential_queries.holds_any_factor(request.user, shown)


def signed_in_recently(request: HttpRequest) -> bool:
    """By the issuer, in this session and a moment ago: what people without a password have to show instead of one."""
    records = get_authentication_records(request, request.user) if isinstance(request.user, User) else []
    return any(record["method"] == BY_ISSUER and record["at"] > time.time() - RECENTLY_S for record in records)
