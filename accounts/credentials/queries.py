"""Reads about sign-in: second factors and sessions."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from allauth.mfa.models import Authenticator
from allauth.usersessions.models import UserSession
from django.contrib.sessions.models import Session
from django.utils import timezone

from accounts.models import Event, User
from portal.web.client_address import network_of

SIGN_INS = ("account.signed_in", "account.glass_broken")
SIGN_INS_READ = 50


@dataclass(frozen=True)
class SessionRow:
    pk: int
    address: str
    browser: str
    since: datetime
    is_this: bool


def has_signed_in_from(email: str, network: str) -> bool:
    """Whether one of the last sign-ins of this account came from this network (client_address.network_of). One query,
    two for an account that exists.
    """
    user = User.objects.filter(email=email.strip().lower()).first()
    if user is None:
        return False
    events = Event.objects.filter(actor_id=user.pk, verb__in=SIGN_INS).order_by("-id")[:SIGN_INS_READ]
    return network in {network_of(str(after.get("address", ""))) for after in events.values_list("after", flat=True)}


def sessions_of(user: User, *, this: str) -> list[SessionRow]:
    """The user's valid sessions, newest first. One query. `this`: the key of the current session."""
    alive = Session.objects.filter(expire_date__gt=timezone.now()).values("session_key")
    rows = UserSession.objects.filter(user=user, session_key__in=alive).order_by("-created_at", "-pk")
    return [SessionRow(row.pk, row.ip, row.user_agent, row.created_at, row.session_key == this) for row in rows]


def second_factor_holders(users: Collection[User]) -> set[int]:
    """Returns the primary keys of those of `users` who have a second factor."""
    held = Authenticator.objects.filter(user__in=users, type=Authenticator.Type.TOTP)
    return set(held.values_list("user_id", flat=True))
