"""Whether a user has a second factor, and whether the session of a request has passed it."""

from __future__ import annotations

from allauth.account.authentication import get_authentication_records
from allauth.mfa.models import Authenticator
from django.http import HttpRequest

from accounts.models import User


def holds_second_factor(user: User) -> bool:
    return Authenticator.objects.filter(user=user, type=Authenticator.Type.TOTP).exists()


def showed_second_factor(request: HttpRequest) -> bool:
    """Whether this session has passed a second factor that its user still has. One query if it has passed any."""
    if not isinstance(request.user, User):
        return False
    records = get_authentication_records(request, request.user)
    shown = [record["id"] for record in records if record["method"] == "mfa"]
    return bool(shown) and Authenticator.objects.filter(user=request.user, pk__in=shown).exists()
