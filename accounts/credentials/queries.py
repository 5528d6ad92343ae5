"""Reads about sign-in: second factors and sessions."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from allauth.mfa.models import Authenticator
from allauth.usersessions.models import UserSession
from django.contrib.sessions.models import Session
from django.utils import timezone

from accounts.models import User


@dataclass(frozen=True)
class SessionRow:
    pk: int
    address: str
    browser: str
    since: datetime
    is_this: bool


def sessions_of(user: User, *, this: str) -> list[SessionRow]:
    """The user's valid sessions, newest first. One query. `this`: the key of the current session."""
    alive = Session.objects.filter(expire_date__gt=timezone.now()).values("session_key")
    rows = UserSession.objects.filter(user=user, session_key__in=alive).order_by("-created_at", "-pk")
    return [SessionRow(row.pk, row.ip, row.user_agent, row.created_at, row.session_key == this) for row in rows]


def holds_second_factor(user: User) -> bool:
    return Authenticator.objects.filter(user=user, type=Authenticator.Type.TOTP).exists()


def second_factor_holders(users: Collection[User]) -> set[int]:
    """Returns the primary keys of those of `users` who have a second factor."""
    held = Authenticator.objects.filter(user__in=users, type=Authenticator.Type.TOTP)
    return set(held.values_list("user_id", flat=True))


def holds_any_factor(user: User, factors: Collection[int]) -> bool:
    """Whether the user still has one of these factors (primary keys)."""
    return bool(factors) and Authenticator.objects.filter(user=user, pk__in=factors).exists()
