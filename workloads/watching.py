"""Who may watch a namespace: asked when a stream opens, and again for all open streams at once every five seconds."""

from __future__ import annotations

from collections.abc import Collection, Hashable
from dataclasses import dataclass

from django.contrib.sessions.models import Session
from django.utils import timezone

from accounts import queries as accounts
from accounts.actor import Actor
from accounts.models import ApiToken, Scope, User
from tenants.models import Membership, Namespace
from workloads.gateway import session_user


@dataclass(frozen=True)
class Watcher:
    """A person in front of one namespace, by browser session or by token; the other one is ""."""

    user_id: int
    namespace: str
    session_key: str = ""
    token_prefix: str = ""


def person(*, session_key: str, bearer: str) -> tuple[User, str, str] | None:
    """Who asks: the user, and the session key or the token's prefix. Raises Refused (401) for a bad token."""
    if bearer:
        token = accounts.token_from(bearer)
        return (token.user, "", token.prefix) if Scope.READ in token.scopes else None
    row = Session.objects.filter(session_key=session_key, expire_date__gt=timezone.now()).first()
    if row is None:
        return None
    user_id = row.get_decoded().get("_auth_user_id", "")
    user = User.objects.filter(pk=user_id, is_active=True).first() if str(user_id).isdigit() else None
    if user is None or session_user(row.session_data, user) is None:
        return None
    return user, session_key, ""


def may_watch(user: User, namespace: str) -> bool:
    return Namespace.objects.visible_to(Actor(user=user, via="stream")).filter(name=namespace).exists()


def still_allowed(watchers: Collection[Hashable]) -> set[Hashable]:
    """Four queries for all of them: sessions, tokens, people, memberships."""
    asked = [watcher for watcher in watchers if isinstance(watcher, Watcher)]
    users = User.objects.in_bulk({watcher.user_id for watcher in asked})
    now = timezone.now()
    sessions = dict(
        Session.objects.filter(
            session_key__in={watcher.session_key for watcher in asked}, expire_date__gt=now
        ).values_list("session_key", "session_data")
    )
    tokens = dict(
        ApiToken.objects.filter(
            prefix__in={watcher.token_prefix for watcher in asked}, revoked_at=None, expires_at__gt=now
        ).values_list("prefix", "user_id")
    )
    members = set(
        Membership.objects.filter(
            user_id__in=users, tenant__namespaces__name__in={watcher.namespace for watcher in asked}
        ).values_list("user_id", "tenant__namespaces__name")
    )
    return {watcher for watcher in asked if _is_allowed(watcher, users, sessions, tokens, members)}


def _is_allowed(
    watcher: Watcher,
    users: dict[int, User],
    sessions: dict[str, str],
    tokens: dict[str, int],
    members: set[tuple[int, str]],
) -> bool:
    user = users.get(watcher.user_id)
    if user is None or not user.is_active:
        return False
    if watcher.token_prefix:
        signed_in = tokens.get(watcher.token_prefix) == user.pk
    else:
        data = sessions.get(watcher.session_key)
        signed_in = data is not None and session_user(data, user) is not None
    return signed_in and ((user.pk, watcher.namespace) in members or bool(user.roles))
