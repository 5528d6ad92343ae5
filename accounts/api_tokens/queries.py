"""Reads about tokens. Both web and doors authenticate tokens only with `authenticate_token`."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from allauth.mfa.models import Authenticator
from django.db import connection
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.crypto import constant_time_compare

from accounts.api_tokens import token_text
from accounts.core.actor import Actor
from accounts.models import ApiToken, Role, User
from portal.core.errors import Refusal, Refused
from portal.core.sql import columns, instance
from portal.ui.text import time_with_zone

BAD_TOKEN = Refusal("bad_token", "The token is not valid. Check that you copied all of it.", status=401)


@dataclass(frozen=True)
class TokenRow:
    """One token in a list. `is_active`: neither expired nor revoked when it was read."""

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
    """The list row of a token that was read with its user."""
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
    """The user's personal tokens that are not revoked, newest first. Expired ones show why a job stopped."""
    return _tokens().filter(user=user, tenant="")


def tokens_of_team(slug: str) -> QuerySet[ApiToken]:
    """As `tokens_of`, for the team's tokens of all its members."""
    return _tokens().filter(tenant=slug)


def all_tokens(*, owner: str = "") -> QuerySet[ApiToken]:
    """As `tokens_of`, but of all users or of one email (`owner`), including tokens of teams."""
    return _tokens().filter(user__email=owner.lower()) if owner else _tokens()


def tokens_to_revoke(by: Actor) -> QuerySet[ApiToken]:
    """The actor's own tokens; for administrators, all tokens. Other users must not learn that a token exists."""
    found = _tokens()
    return found if by.user is None or by.has_role(Role.ADMIN) else found.filter(user=by.user)


def _tokens() -> QuerySet[ApiToken]:
    return ApiToken.objects.filter(revoked_at=None).select_related("user").order_by("-id")


def authenticate_token(text: str) -> ApiToken:
    """Returns the token with this text, with its user. Both web and doors use it, and nothing else.

    Raises Refused (401). The message states what is wrong with a token only to callers who know its secret.
    """
    parsed = token_text.parse_token(text)
    if parsed is None:
        raise Refused(BAD_TOKEN)
    token = _token(parsed.prefix)
    if not constant_time_compare(parsed.digest, token.digest if token else "") or token is None:
        raise Refused(BAD_TOKEN)
    if token.revoked_at is not None:
        raise Refused(Refusal("token_revoked", f"The token {token.name!r} was revoked. Use another.", status=401))
    if token.expires_at <= timezone.now():
        when = time_with_zone(token.expires_at)
        raise Refused(
            Refusal("token_expired", f"The token {token.name!r} expired on {when}. Create a new one.", status=401)
        )
    if not token.user.is_active:
        raise Refused(Refusal("account_suspended", "This account is suspended. Ask an administrator.", status=401))
    return token


def _token(prefix: str) -> ApiToken | None:
    """With its user. Written as SQL text, because every call of the API and of doors needs it."""
    with connection.cursor() as cursor:
        cursor.execute(_TOKEN, [prefix])
        found = cursor.fetchone()
    if found is None:
        return None
    values = iter(found)
    token = instance(ApiToken, values)
    token.user = instance(User, values)
    token.owner_has_second_factor = bool(next(values))
    return token


_TOKEN = f"""
SELECT {columns(ApiToken, "token")}, {columns(User, "person")},
       EXISTS (SELECT FROM {Authenticator._meta.db_table} factor
                WHERE factor.user_id = person.id AND factor.type = '{Authenticator.Type.TOTP.value}')
  FROM {ApiToken._meta.db_table} token JOIN {User._meta.db_table} person ON person.id = token.user_id
 WHERE token.prefix = %s"""
