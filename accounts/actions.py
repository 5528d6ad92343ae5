"""The verbs about accounts, and `record` and `deliver`, with which every other app's verbs end.

Each verb is one transaction that writes exactly one Event.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.core.serializers.json import DjangoJSONEncoder
from django.db import connection, models, transaction
from django.db.models.functions import Now
from django.utils import timezone

from accounts import policy, queries, tokens
from accounts.actor import Actor
from accounts.models import ApiToken, Delivery, Event, Role, Scope, User
from portal import due
from portal.errors import NOT_FOUND, Refused, get_or_refuse, refuse_if
from portal.hints import worker_hint

REMINDED_BEFORE = timedelta(days=7)


def record(
    by: Actor,
    verb: str,
    row: models.Model,
    *,
    tenant: str = "",
    before: Mapping[str, Any] | None = None,
    after: Mapping[str, Any] | None = None,
) -> Event:
    """Append who did what. `verb` is `<noun>.<past participle>`; `before` and `after` name the changed fields only.

    Belongs into the transaction of the change: an event without its change, or a change without its event, is a lie.
    """
    if not connection.in_atomic_block:
        raise transaction.TransactionManagementError(f"record({verb!r}) outside of the transaction of its change")
    return Event.objects.create(
        actor_id=by.user_id,
        actor=by.name[:120],
        via=by.via[:40],
        verb=verb,
        tenant=tenant,
        row=queries.row_label(row),
        name=str(row)[:120],
        before=_plain(before or {}),
        after=_plain(after or {}),
        request_id=by.request_id,
    )


def deliver(event: Event, users: Iterable[User], *, subject: str, body: str, at: datetime | None = None) -> None:
    """Tell people about an event, each once, in its transaction; `at`: not before then (a reminder)."""
    line = " ".join(subject.split())[:150]
    recipients = {user.pk: user for user in users if user.is_active}
    Delivery.objects.bulk_create(
        [
            Delivery(event=event, user=user, subject=line, body=body[:4000], due_at=at or Now())
            for user in recipients.values()
        ]
    )
    if recipients and at is None:
        worker_hint(due.label(Delivery), queue=Delivery.queue)


def deliver_to_address(event: Event, address: str, *, subject: str, body: str) -> None:
    """Tell somebody who has no account yet."""
    line = " ".join(subject.split())[:150]
    Delivery.objects.create(event=event, address=address, subject=line, body=body[:4000])
    worker_hint(due.label(Delivery), queue=Delivery.queue)


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """Dates, decimals and choices as JSON has them."""
    plain: dict[str, Any] = json.loads(json.dumps(values, cls=DjangoJSONEncoder))
    return plain


# ---- tokens ----------------------------------------------------------------------------------------------------


@transaction.atomic
def create_token(
    *, name: str, scopes: Collection[str], expires_in_days: int, tenant: str = "", by: Actor
) -> tuple[ApiToken, str]:
    """The new token and its text, which is shown now and never again. Its owner is told a week before it ends.

    `tenant`: of a team's token; whether `by` may make one there is asked by tenants.team_tokens, which calls this.
    Raises Refused: not_signed_in (401), lacks_scope, outlives_token, team_token (403), name_taken (409), the rest 422.
    """
    User.objects.select_for_update().get(pk=by.person.pk)  # one at a time: the number of tokens is a rule
    end = timezone.now() + timedelta(days=max(0, min(expires_in_days, policy.TOKEN_DAYS_MAX)))
    refuse_if(
        policy.may_create_token(
            by,
            scopes=scopes,
            expires_in_days=expires_in_days,
            tokens_held=(queries.tokens_of_team(tenant) if tenant else queries.tokens_of(by.person)).count(),
            own_end=by.token_expires_at,
            end=end,
            tenant=tenant,
        )
    )
    text = tokens.new()
    token = ApiToken.objects.create(
        user=by.person,
        name=policy.clean_token_name(name),
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
    """It stops working with the next request. Raises Refused: not_found (404), also when it was revoked before."""
    token = get_or_refuse(queries.tokens_to_revoke(by).select_for_update(of=("self",)), prefix=prefix)
    refuse_if(policy.may_revoke_token(by, token))
    end_token(token, by=by)
    return token


@transaction.atomic
def end_token(token: ApiToken, *, by: Actor) -> None:
    """Whoever calls this has asked whether `by` may. Nobody is reminded of it any more."""
    token.revoked_at = timezone.now()
    token.save(update_fields=["revoked_at"])
    record(by, "token.revoked", token, tenant=token.tenant)
    Delivery.objects.filter(event__row=queries.row_label(token), sent_at=None).delete()


def _reminder(token: ApiToken) -> tuple[str, str]:
    of_team, where = (f" of {token.tenant}", f"/teams/{token.tenant}/tokens") if token.tenant else ("", "/tokens")
    body = (
        f"{token}, a token{of_team} with the scopes {', '.join(token.scopes)}, ends on "
        f"{token.expires_at:%d %b %Y, %H:%M %Z}; what uses it is refused from then on. Make a new one, put it where "
        f"this one is, and revoke this one: {settings.PORTAL_URL}{where}"
    )
    return f"The token {token.name}{of_team} ends on {token.expires_at:%d %b %Y}", body


# ---- sessions --------------------------------------------------------------------------------------------------


@transaction.atomic
def signed_in(*, by: Actor, address: str = "", second_factor: str = "", issuer: str = "") -> Event:
    """Somebody proved to be `by.user`; Django keeps the session itself. Of the break-glass account all admins hear."""
    how = {"second_factor": second_factor, "issuer": issuer}
    after = {"address": address} | {name: value for name, value in how.items() if value}
    if not by.person.is_superuser:
        return record(by, "account.signed_in", by.person, after=after)
    event = record(by, "account.glass_broken", by.person, after=after)
    text = f"{by.name} ({by.person.email}) signed in from {address}. If nobody can tell you why, suspend the account."
    deliver(event, queries.active_administrators(), subject="The break-glass account was used", body=text)
    return event


@transaction.atomic
def signed_out(*, by: Actor) -> Event:
    return record(by, "account.signed_out", by.person)


# ---- people ----------------------------------------------------------------------------------------------------


@transaction.atomic
def set_roles(user_id: int, roles: Collection[str], *, by: Actor) -> User:
    """The same roles again change nothing.

    Raises Refused: not_found (404), not_allowed, own_roles, lacks_role (403), last_admin (409), unknown_role (422).
    """
    by, target, other_admins = locked(by, user_id)
    refuse_if(policy.may_set_roles(by, target, roles, other_admins=other_admins))
    before, target.roles = target.roles, sorted(set(roles))
    if sorted(before) != target.roles:
        # Given again by hand, a role is no longer a group's to take.
        target.group_roles = [role for role in target.group_roles if role in target.roles]
        target.save(update_fields=["roles", "group_roles"])
        record(by, "account.roles_set", target, before={"roles": before}, after={"roles": target.roles})
    return target


@transaction.atomic
def suspend_user(user_id: int, *, because: str, by: Actor) -> User:
    """Sessions and tokens stop working with the next request; nothing is deleted.

    Raises Refused: not_found (404), not_allowed, own_account (403), last_admin, already_so (409), reason_missing (422).
    """
    by, target, other_admins = locked(by, user_id)
    refuse_if(policy.may_suspend(by, target, other_admins=other_admins))
    because = " ".join(because.split())
    refuse_if(policy.because_refusal(because, is_needed=True))
    _set_active(target, to=False)
    record(by, "account.suspended", target, before={"is_active": True}, after={"is_active": False, "because": because})
    return target


@transaction.atomic
def restore_user(user_id: int, *, because: str = "", by: Actor) -> User:
    """Raises Refused: not_found (404), not_allowed, own_account (403), already_so (409)."""
    by, target, _ = locked(by, user_id)
    refuse_if(policy.may_restore(by, target))
    because = " ".join(because.split())
    refuse_if(policy.because_refusal(because, is_needed=False))
    _set_active(target, to=True)
    after = {"is_active": True, **({"because": because} if because else {})}
    record(by, "account.restored", target, before={"is_active": False}, after=after)
    return target


def _set_active(target: User, *, to: bool) -> None:
    refuse_if(policy.may_change_activity(target, to=to))
    target.is_active = to
    target.save(update_fields=["is_active"])


def locked(by: Actor, user_id: int) -> tuple[Actor, User, int]:
    """Actor and target as they are now, and how many other active administrators there are; all locked in id order: an
    administrator may just have lost the role, and of two that are left only one may lose it.
    """
    wanted = [user_id] if by.user_id is None else [user_id, by.user_id]
    found = User.objects.filter(pk__in=wanted) | queries.active_administrators()
    rows = {user.pk: user for user in found.select_for_update(no_key=True).order_by("pk")}
    if user_id not in rows:
        raise Refused(NOT_FOUND)
    others = sum(user.is_active and user.has_role(Role.ADMIN) for user in rows.values() if user.pk != user_id)
    return (by if by.user_id is None else replace(by, user=rows[by.user_id])), rows[user_id], others
