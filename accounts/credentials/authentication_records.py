"""Whether the issuer authenticated a session, as recorded by allauth. accounts/core/second_factor.py has the factor."""

from __future__ import annotations

import time

from allauth.account.authentication import get_authentication_records
from django.http import HttpRequest

from accounts.models import User

# The method in allauth's records of a session for a sign-in by the single sign-on issuer.
BY_ISSUER = "oidc"

RECENTLY_S = 15 * 60


def signed_in_recently(request: HttpRequest) -> bool:
    """Whether the issuer signed the user in, in this session, a moment ago. It replaces the password of users without
    one.
    """
    records = get_authentication_records(request, request.user) if isinstance(request.user, User) else []
    return any(record["method"] == BY_ISSUER and record["at"] > time.time() - RECENTLY_S for record in records)
