"""How users get an account and a password: from administrators, who vouch for the email.

The user sets a password with a code, which the administrator sees once and which is not stored. It is Django's token
for a password reset: signed over the current password and last sign-in, so it works once, until it expires. The user
types it: it is not in a link, since URLs are logged, and not in an email, since emails are stored as rows.
"""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth.tokens import default_token_generator
from django.db import transaction

from accounts.account_setup import policy
from accounts.core.actor import Actor
from accounts.credentials.actions import NOT_YOU, end_sessions
from accounts.events.actions import deliver, record
from accounts.models import User
from accounts.people import policy as people_policy
from accounts.people.actions import lock_actor_and_target, lock_self
from portal.core.errors import refuse_if

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
    return user, default_token_generator.make_token(user)


@transaction.atomic
def make_password_code(user_id: int, *, by: Actor) -> tuple[User, str]:
    """Returns an existing account and a code for its lost password. The old password works until the code is used.

    Raises Refused: not_found (404), not_allowed, own_account, break_glass, lacks_role (403), suspended (409).
    """
    by, target, _ = lock_actor_and_target(by, user_id)
    refuse_if(policy.may_make_password_code(by, target))
    event = record(by, "account.password_code_made", target)
    text = f"{by.name} created a code for setting a new password: {_page()}\n\n{NOT_YOU}"
    deliver(event, [target], subject="A password code was created for you", body=text)
    return target, default_token_generator.make_token(target)


def user_of_password_code(email: str, code: str) -> User | None:
    """Returns None if the account does not exist or is suspended, or if the code is wrong, expired or used."""
    user = User.objects.filter(email=email.strip().lower(), is_active=True).first()
    return user if user is not None and default_token_generator.check_token(user, code) else None


@transaction.atomic
def set_password_with_code(code: str, new: str, *, by: Actor) -> bool:
    """`by`: the user of the code. All sessions end; a second factor stays. False: the code was used in the meantime."""
    user = lock_self(by)
    if not default_token_generator.check_token(user, code):
        return False
    user.set_password(new)
    user.save(update_fields=["password"])
    ended = end_sessions(user)
    event = record(by, "account.password_set", user, after={"sessions_ended": ended})
    deliver(event, [user], subject="Your password was set", body=NOT_YOU)
    return True


def _page() -> str:
    return f"{settings.PORTAL_URL}/login/password"
