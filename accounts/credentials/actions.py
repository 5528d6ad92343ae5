"""The verbs about sign-in: password, second factor, sessions. allauth stores the rows of the last two.

A second factor is a one-time code of an app (TOTP), with recovery codes in case the phone is lost. The user gets an
email about every change, to notice changes that another person made.
"""

from __future__ import annotations

import base64
import secrets

import structlog
from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.totp.internal.auth import format_hotp_value, hotp_value, yield_hotp_counters_from_time
from allauth.mfa.utils import decrypt, encrypt
from allauth.usersessions.models import UserSession
from django.conf import settings
from django.contrib.auth.password_validation import validate_password
from django.contrib.sessions.models import Session
from django.db import transaction
from django.utils import timezone
from django.utils.crypto import salted_hmac
from nacl.exceptions import CryptoError

from accounts.core.actor import Actor
from accounts.core.second_factor import holds_second_factor
from accounts.credentials import policy
from accounts.events.actions import deliver, record
from accounts.models import Event, User
from accounts.people import policy as people_policy
from accounts.people.actions import lock_actor_and_target, lock_self
from accounts.people.policy import RolesLentTo
from portal.core.errors import get_or_refuse, refuse_if

log = structlog.get_logger(__name__)
NOT_YOU = "If this was not you, contact an administrator of the portal immediately."


# ---- second factor -----------------------------------------------------------------------------------------------


def pending_totp_seed(user: User, session_key: str) -> str:
    """The TOTP seed of the factor that a session is about to add. It is derived, not stored: it stays the same when the
    page is reloaded, and changes after each added factor. One query.
    """
    added = Event.objects.filter(actor_id=user.pk, verb="account.second_factor_added").count()
    text = f"{user.pk} {session_key} {added}"
    digest = salted_hmac("accounts.signing", text, secret=settings.SECOND_FACTOR_KEY, algorithm="sha256").digest()
    return base64.b32encode(digest[:20]).decode()


def totp_step_of(seed: str, code: str) -> int | None:
    """Returns the time step (around now) that this code belongs to, or None if the code is wrong."""
    typed = "".join(code.split())
    for step in yield_hotp_counters_from_time():
        if secrets.compare_digest(typed.encode(), format_hotp_value(hotp_value(seed, step)).encode()):
            return int(step)
    return None


@transaction.atomic
def consume_code(user: User, code: str) -> Authenticator | None:
    """Returns the factor of this code, and None for a wrong or used code. Each code works once. Used codes are stored
    in the row, not in Redis as in allauth: Redis may be unavailable or lose data.
    """
    for row in Authenticator.objects.select_for_update().filter(user=user).order_by("-type"):
        try:
            if _uses(row, code):
                row.last_used_at = timezone.now()
                row.save(update_fields=["data", "last_used_at"])
                return row
        except CryptoError:
            log.error("second_factor_unreadable", user=user.pk, why="sealed with another SECOND_FACTOR_KEY")
    return None


def _uses(row: Authenticator, code: str) -> bool:
    if row.type == Authenticator.Type.TOTP:
        step = totp_step_of(decrypt(row.data["secret"]), code)
        if step is None or step <= row.data.get("used_step", -1):
            return False
        row.data["used_step"] = step
        return True
    codes = RecoveryCodes(row)
    if not codes.validate_code(code):
        return False
    row.data = codes.instance.data
    return True


@transaction.atomic
def add_second_factor(seed: str, *, step: int, by: Actor) -> tuple[Authenticator, list[str]]:
    """Returns the factor and its recovery codes, which are shown only once. `step`: of the code that proved the seed.

    Raises Refused: second_factor_there, no_second_factor_key (409).
    """
    user = lock_self(by)
    refuse_if(policy.may_add_second_factor(held=holds_second_factor(user), has_key=has_second_factor_key()))
    row = Authenticator.objects.create(
        user=user, type=Authenticator.Type.TOTP, data={"secret": encrypt(seed), "used_step": step}
    )
    event = record(by, "account.second_factor_added", user)
    deliver(event, [user], subject="A second factor was added to your account", body=NOT_YOU)
    return row, _new_codes(user)


@transaction.atomic
def renew_recovery_codes(*, by: Actor) -> list[str]:
    """Returns new recovery codes; the previous ones become invalid. Raises Refused: no_second_factor (409)."""
    user = lock_self(by)
    refuse_if(policy.may_change_second_factor(held=holds_second_factor(user)))
    event = record(by, "account.recovery_codes_made", user)
    deliver(event, [user], subject="New recovery codes were created for your account", body=NOT_YOU)
    return _new_codes(user)


@transaction.atomic
def remove_second_factor(*, by: Actor) -> None:
    """Removes the user's own second factor. Raises Refused: no_second_factor (409)."""
    user = lock_self(by)
    refuse_if(policy.may_change_second_factor(held=holds_second_factor(user)))
    Authenticator.objects.filter(user=user).delete()
    event = record(by, "account.second_factor_removed", user)
    deliver(event, [user], subject="The second factor of your account was removed", body=NOT_YOU)


@transaction.atomic
def drop_second_factor(user_id: int, *, because: str, lent_to: RolesLentTo, by: Actor) -> User:
    """Removes the factor of another user, who has lost phone and recovery codes. All sessions of that user end.

    Raises Refused: not_found (404), not_allowed, own_account, break_glass, lacks_role (403), no_second_factor (409),
    reason_missing (422).
    """
    by, user, _ = lock_actor_and_target(by, user_id)
    refuse_if(policy.may_drop_second_factor(by, user, lent=lent_to(user)))
    because = people_policy.clean_reason(because, is_needed=True)
    refuse_if(policy.may_change_second_factor(held=holds_second_factor(user)))
    Authenticator.objects.filter(user=user).delete()
    end_sessions(user)
    event = record(by, "account.second_factor_dropped", user, after={"because": because})
    text = f"Removed by {by.name}: {because}\n\n{NOT_YOU}"
    deliver(event, [user], subject="The second factor of your account was removed", body=text)
    return user


def has_second_factor_key() -> bool:
    return bool(settings.SECOND_FACTOR_KEY)


def _new_codes(user: User) -> list[str]:
    Authenticator.objects.filter(user=user, type=Authenticator.Type.RECOVERY_CODES).delete()
    codes: list[str] = RecoveryCodes.activate(user).generate_codes()
    return codes


# ---- password and sessions ---------------------------------------------------------------------------------------


@transaction.atomic
def change_password(new: str, *, keep: str, by: Actor) -> User:
    """Changes the user's own password; all sessions but `keep` end. Raises ValidationError for a weak password."""
    user = lock_self(by)
    validate_password(new, user)
    user.set_password(new)
    user.save(update_fields=["password"])
    ended = end_sessions(user, keep=keep)
    event = record(by, "account.password_changed", user, after={"sessions_ended": ended})
    deliver(event, [user], subject="Your password was changed", body=NOT_YOU)
    return user


@transaction.atomic
def end_session(session_id: int, *, by: Actor) -> None:
    """The session's pages, streams and notebooks close within seconds. Raises Refused: not_found (404)."""
    row = get_or_refuse(UserSession.objects.filter(user=by.person), pk=session_id)
    Session.objects.filter(session_key=row.session_key).delete()
    row.delete()
    record(by, "account.session_ended", by.person, before={"address": row.ip, "browser": row.user_agent})


@transaction.atomic
def end_other_sessions(*, keep: str, by: Actor) -> int:
    """How many ended."""
    ended = end_sessions(by.person, keep=keep)
    record(by, "account.sessions_ended", by.person, after={"sessions_ended": ended})
    return ended


def end_sessions(user: User, *, keep: str = "") -> int:
    """How many ended."""
    rows = UserSession.objects.filter(user=user).exclude(session_key=keep)
    ended, _ = Session.objects.filter(session_key__in=list(rows.values_list("session_key", flat=True))).delete()
    rows.delete()
    return ended
