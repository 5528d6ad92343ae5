"""Reads about people, tokens and events."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.usersessions.models import UserSession
from django.contrib.sessions.models import Session
from django.db import connection
from django.db.models import Model, Q, QuerySet
from django.utils import timezone
from django.utils.crypto import constant_time_compare

from accounts import tokens
from accounts.actor import Actor
from accounts.models import ApiToken, Event, Role, User
from portal.errors import Refusal, Refused
from portal.sql import columns, instance, select

BAD_TOKEN = Refusal("bad_token", "This is not a valid token; check that it was copied whole.", status=401)


@dataclass(frozen=True)
class TokenRow:
    """One token in a list. `is_active`: neither expired nor revoked at the moment of reading."""

    name: str
    prefix: str
    tenant: str
    owner: str
    scopes: tuple[str, ...]
    created_at: datetime
    expires_at: datetime
    last_used_at: datetime | None
    revoked_at: datetime | None
    is_active: bool


def token_row(token: ApiToken) -> TokenRow:
    """Of a token with its user."""
    return TokenRow(
        name=token.name,
        prefix=token.prefix,
        tenant=token.tenant,
        owner=token.user.email,
        scopes=tuple(token.scopes),
        created_at=token.created_at,
        expires_at=token.expires_at,
        last_used_at=token.last_used_at,
        revoked_at=token.revoked_at,
        is_active=token.revoked_at is None and token.expires_at > timezone.now(),
    )


def tokens_of(user: User) -> QuerySet[ApiToken]:
    """Not revoked, newest first, none of a team; expired ones included, so that people see why a job stopped."""
    return _tokens().filter(user=user, tenant="")


def tokens_of_team(slug: str) -> QuerySet[ApiToken]:
    """As `tokens_of`, of all its people."""
    return _tokens().filter(tenant=slug)


def all_tokens(*, owner: str = "") -> QuerySet[ApiToken]:
    """As `tokens_of`, of everybody or of one address, with those of teams."""
    return _tokens().filter(user__email=owner.lower()) if owner else _tokens()


def tokens_to_revoke(by: Actor) -> QuerySet[ApiToken]:
    """Own ones, or everybody's for administrators. Of others' tokens the rest may not even know."""
    found = _tokens()
    return found if by.user is None or by.has_role(Role.ADMIN) else found.filter(user=by.user)


def _tokens() -> QuerySet[ApiToken]:
    return ApiToken.objects.filter(revoked_at=None).select_related("user").order_by("-id")


def token_from(text: str) -> ApiToken:
    """The token that `text` is, with its user: the one way in for web and doors alike.

    Raises Refused (401). What is wrong with a token is said only to who knows its secret.
    """
    parsed = tokens.parse(text)
    if parsed is None:
        raise Refused(BAD_TOKEN)
    token = _token(parsed.prefix)
    if not constant_time_compare(parsed.digest, token.digest if token else "") or token is None:
        raise Refused(BAD_TOKEN)
    if token.revoked_at is not None:
        raise Refused(Refusal("token_revoked", f"The token {token.name!r} was revoked. Use another.", status=401))
    if token.expires_at <= timezone.now():
        when = f"{token.expires_at:%d %b %Y, %H:%M %Z}"
        raise Refused(
            Refusal("token_expired", f"The token {token.name!r} expired on {when}. Make a new one.", status=401)
        )
    if not token.user.is_active:
        raise Refused(Refusal("account_suspended", "This account is suspended; ask an administrator.", status=401))
    return token


def _token(prefix: str) -> ApiToken | None:
    """With its user. As text: every call of the API and of doors asks this."""
    with connection.cursor() as cursor:
        cursor.execute(_TOKEN, [prefix])
        found = cursor.fetchone()
    if found is None:
        return None
    values = iter(found)
    token = instance(ApiToken, values)
    token.user = instance(User, values)
    return token


_TOKEN = f"""
SELECT {columns(ApiToken, "token")}, {columns(User, "person")}
  FROM {ApiToken._meta.db_table} token JOIN {User._meta.db_table} person ON person.id = token.user_id
 WHERE token.prefix = %s"""


def people(text: str = "", role: str = "", *, suspended: bool | None = None) -> QuerySet[User]:
    """All accounts, or those with each word of `text` in name or address, with this role, suspended or not."""
    found = User.objects.all()
    for word in text.split():
        found = found.filter(Q(name__icontains=word) | Q(email__icontains=word))
    if role:
        found = found.filter(roles__contains=[role])
    return found if suspended is None else found.filter(is_active=not suspended)


def active_administrators() -> QuerySet[User]:
    return User.objects.filter(is_active=True, roles__contains=[Role.ADMIN])


# ---- how somebody signs in -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SessionRow:
    pk: int
    address: str
    browser: str
    since: datetime
    is_this: bool


def sessions_of(user: User, *, this: str) -> list[SessionRow]:
    """Those that work, newest first. One query. `this`: the key of the session that asks."""
    alive = Session.objects.filter(expire_date__gt=timezone.now()).values("session_key")
    rows = UserSession.objects.filter(user=user, session_key__in=alive).order_by("-created_at", "-pk")
    return [SessionRow(row.pk, row.ip, row.user_agent, row.created_at, row.session_key == this) for row in rows]


def holds_second_factor(user: User) -> bool:
    return Authenticator.objects.filter(user=user, type=Authenticator.Type.TOTP).exists()


def who_hold_second_factor(users: Collection[User]) -> set[int]:
    """Of these, by key."""
    held = Authenticator.objects.filter(user__in=users, type=Authenticator.Type.TOTP)
    return set(held.values_list("user_id", flat=True))


def holds_any(user: User, factors: Collection[int]) -> bool:
    """Whether one of these, by key, is still theirs."""
    return bool(factors) and Authenticator.objects.filter(user=user, pk__in=factors).exists()


def at_verified_address(email: str) -> User | None:
    """Whose address this is for certain. An address that was only claimed leads to nobody."""
    return User.objects.filter(email=email, emailaddress__email=email, emailaddress__verified=True).first()


def verified_addresses(user: User | None) -> QuerySet[EmailAddress, str]:
    """For `email__in`: an address that somebody only claims must not bring them what was meant for its owner."""
    found: QuerySet[EmailAddress, str] = EmailAddress.objects.filter(user=user, verified=True).values_list(
        "email", flat=True
    )
    return found


def events_for(by: Actor, *, tenants: Collection[str] | QuerySet) -> QuerySet[Event]:
    """What `by` may know: events of these tenants and their own; everything for staff. Newest first. To a team's token
    its maker's other doings are nothing.

    `tenants`: the slugs of their teams, handed in because this app knows teams by name only.
    """
    found = Event.objects.order_by("-id")
    if by.user is None or by.sees_all:
        return found
    theirs = Q(tenant__in=tenants)
    return found.filter(theirs if by.confined_to else theirs | Q(actor_id=by.user_id))


def events_of_tenant(slug: str) -> QuerySet[Event]:
    return Event.objects.filter(tenant=slug).order_by("-id")


def latest_events(tenant: str, at_most: int) -> list[Event]:
    """Of a tenant, newest first. As text: every rendering of its page asks this."""
    return select(Event, "tenant = %s ORDER BY id DESC LIMIT %s", [tenant, at_most])


def events_of_row(row: Model) -> QuerySet[Event]:
    """Newest first. The row may be gone: events outlive what they are about."""
    return Event.objects.filter(row=row_label(row)).order_by("-id")


def row_label(row: Model) -> str:
    """`<app>.<model>.<pk>`: how events name a row."""
    return f"{row._meta.label_lower}.{row.pk}"
