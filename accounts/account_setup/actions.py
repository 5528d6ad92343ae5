"""How users get an account and a password: from administrators, who vouch for the email.

The user sets a password with a code, which the administrator sees once and which is not stored. It is Django's token
for a password reset: signed over the current password and last sign-in, so it works once, until it expires. The user
types it: it is not in a link, since URLs are logged, and not in an email, since emails are stored as rows.

The code starts with the number of the administrator who made it, which is signed too. It works only while this person
may still make one: a user who has meanwhile got a role, or a delegation, that this person lacks needs a new code.
"""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth.tokens import PasswordResetTokenGenerator
from django.db import transaction

from accounts.account_setup import policy
from accounts.core.actor import Actor, system_actor
from accounts.credentials.actions import NOT_YOU, end_sessions
from accounts.events.actions import deliver, record
from accounts.models import User
from accounts.people import policy as people_policy
from accounts.people.actions import lock_actor_and_target, lock_self
from accounts.people.policy import RolesLentTo
from portal.core.errors import refuse_if

BY_PORTAL = "0"
CODE_DAYS = settings.PASSWORD_RESET_TIMEOUT // 86_400


@transaction.atomic
def add_person(*, email: str, name: str, by: Actor) -> tuple[User, str]:
    """Returns a new account without roles and the code for its password. The user gets an email about the account.

    Raises Refused: not_allowed (403), email_taken (409), bad_address, bad_name (422).
    """
    email = email.strip().lower()
    refuse_if(policy.may_add_person(by, email=email, is_taken=User.objects.filter(email=email).exists()))
    user = User.objects.create_user(email=email, name=people_policy.clean_person_name(name))
    event = record(by, "account.added", user, after={"email": email})
    text = f"{by.name} created this account. Get a code from them and set your password: {_page()}"
    deliver(event, [user], subject="Your account was created", body=text)
    return user, _new_code(user, by)


@transaction.atomic
def make_password_code(user_id: int, *, lent_to: RolesLentTo, by: Actor) -> tuple[User, str]:
    """Returns an existing account and a code for its lost password. The old password works until the code is used.

    Raises Refused: not_found (404), not_allowed, own_account, break_glass, lacks_role (403), suspended (409).
    """
    by, target, _ = lock_actor_and_target(by, user_id)
    refuse_if(policy.may_make_password_code(by, target, lent=lent_to(target)))
    event = record(by, "account.password_code_made", target)
    text = f"{by.name} created a code for setting a new password: {_page()}\n\n{NOT_YOU}"
    deliver(event, [target], subject="A password code was created for you", body=text)
    return target, _new_code(target, by)


def user_of_password_code(email: str, code: str, *, lent_to: RolesLentTo) -> User | None:
    """Returns None if the account does not exist or is suspended, or if the code is wrong, expired or used, or is from
    an administrator who may no longer make it.
    """
    user = User.objects.filter(email=email.strip().lower(), is_active=True).first()
    return user if user is not None and _is_valid(code, user, lent_to) else None


@transaction.atomic
def set_password_with_code(code: str, new: str, *, lent_to: RolesLentTo, by: Actor) -> bool:
    """`by`: the user of the code. All sessions end; a second factor stays. False: the code has become invalid in the
    meantime.
    """
    user = lock_self(by)
    if not _is_valid(code, user, lent_to):
        return False
    user.set_password(new)
    user.save(update_fields=["password"])
    ended = end_sessions(user)
    event = record(by, "account.password_set", user, after={"sessions_ended": ended})
    deliver(event, [user], subject="Your password was set", body=NOT_YOU)
    return True


def _new_code(user: User, by: Actor) -> str:
    maker = str(by.user_id or BY_PORTAL)
    return f"{maker}-{_tokens_of(maker).make_token(user)}"


def _is_valid(code: str, user: User, lent_to: RolesLentTo) -> bool:
    maker, _, token = code.partition("-")
    if not _tokens_of(maker).check_token(user, token):
        return False
    # The signature has shown that this is a number which the portal wrote.
    by = system_actor("password code") if maker == BY_PORTAL else _maker(int(maker))
    return by is not None and policy.may_make_password_code(by, user, lent=lent_to(user)) is None


def _maker(user_id: int) -> Actor | None:
    user = User.objects.filter(pk=user_id).first()
    return Actor(user, "page") if user else None


def _tokens_of(maker: str) -> PasswordResetTokenGenerator:
    tokens = PasswordResetTokenGenerator()
    tokens.key_salt = f"accounts.account_setup made by {maker}"
    return tokens


def _page() -> str:
    return f"{settings.PORTAL_URL}/login/password"
