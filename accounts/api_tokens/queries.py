"""Reads about tokens; `authenticate_token` is the one way in for web and doors alike."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

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


def authenticate_token(text: str) -> ApiToken:
    """The token that `text` is, with its user: the one way in for web and doors alike.

    Raises Refused (401). What is wrong with a token is shown only to callers who know its secret.
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
