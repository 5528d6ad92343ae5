"""The verbs about tokens. Each is one transaction that writes exactly one Event."""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from accounts.api_tokens import policy as api_token_policy
from accounts.api_tokens import queries as api_token_queries
from accounts.api_tokens import token_text
from accounts.core.actor import Actor
from accounts.core.second_factor import holds_second_factor
from accounts.events import queries as event_queries
from accounts.events.actions import deliver, record
from accounts.models import ApiToken, Delivery, Notice, Scope, User
from portal.core.errors import get_or_refuse, refuse_if
from portal.ui.text import date_with_year, time_with_zone

REMINDED_BEFORE = timedelta(days=7)


@transaction.atomic
def create_token(
    *, name: str, scopes: Collection[str], expires_in_days: int, tenant: str = "", by: Actor
) -> tuple[ApiToken, str]:
    """Returns the new token and its text, which is shown only once. Its owner gets an email a week before it expires.

    `tenant`: the slug, for a team's token. Its caller, tenants.members.tokens.actions, checks that `by` may create one.
    Raises Refused: not_signed_in (401), lacks_scope, outlives_token, team_token,
    second_factor_needed (403), name_taken (409), the rest 422.
    """
    User.objects.select_for_update().get(pk=by.person.pk)  # one at a time, since the number of tokens is limited
    end = timezone.now() + timedelta(days=max(0, min(expires_in_days, api_token_policy.TOKEN_DAYS_MAX)))
    refuse_if(
        api_token_policy.may_create_token(
            by,
            scopes=scopes,
            expires_in_days=expires_in_days,
            tokens_held=(
                api_token_queries.tokens_of_team(tenant) if tenant else api_token_queries.tokens_of(by.person)
            ).count(),
            own_end=by.token_expires_at,
            end=end,
            has_second_factor=holds_second_factor(by.person),
            tenant=tenant,
        )
    )
    text = token_text.new_token()
    token = ApiToken.objects.create(
        user=by.person,
        name=api_token_policy.clean_token_name(name),
        prefix=text.prefix,
        digest=text.digest,
        tenant=tenant,
        scopes=[scope for scope in Scope.values if scope in scopes],
        expires_at=end,
    )
    after = {"scopes": token.scopes, "expires_at": token.expires_at}
    event = record(by, "token.created", token, tenant=tenant, after=after)
    if (at := end - REMINDED_BEFORE) > timezone.now():
        subject, body = _reminder(token)
        deliver(event, [token.user], subject=subject, body=body, at=at)
    return token, str(text)


@transaction.atomic
def revoke_token(prefix: str, *, by: Actor) -> ApiToken:
    """The token is refused from the next request on. Raises Refused: not_found (404), also if already revoked."""
    token = get_or_refuse(api_token_queries.tokens_to_revoke(by).select_for_update(of=("self",)), prefix=prefix)
    refuse_if(api_token_policy.may_revoke_token(by, token))
    end_token(token, by=by)
    return token


@transaction.atomic
def revoke_own_token(token: ApiToken, *, by: Actor) -> None:
    """By a call with this token, whatever its scopes: for whoever has to get rid of it, and has nothing else. Raises
    Refused: not_found (404), if it was revoked in the meantime.
    """
    end_token(get_or_refuse(ApiToken.objects.select_for_update(), pk=token.pk, revoked_at=None), by=by)


@transaction.atomic
def end_token(token: ApiToken, *, by: Actor) -> None:
    """Revokes the token and deletes its reminder. The caller has checked that `by` may do this."""
    token.revoked_at = timezone.now()
    token.save(update_fields=["revoked_at"])
    record(by, "token.revoked", token, tenant=token.tenant)
    row = event_queries.row_label(token)
    Delivery.objects.filter(event__row=row, sent_at=None).delete()
    Notice.objects.filter(event__row=row, read_at=None).delete()


def _reminder(token: ApiToken) -> tuple[str, str]:
    of_team, where = (f" of {token.tenant}", f"/teams/{token.tenant}/tokens") if token.tenant else ("", "/tokens")
    body = (
        f"The token {token}{of_team} with the scopes {', '.join(token.scopes)} expires on "
        f"{time_with_zone(token.expires_at)}. Requests with it are refused after that. Create a new token, replace "
        f"this one where it is used, and revoke it: {settings.PORTAL_URL}{where}"
    )
    return f"The token {token.name}{of_team} expires on {date_with_year(token.expires_at)}", body
