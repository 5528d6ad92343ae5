"""The verbs that map an issuer's identity to an account and to staff roles."""

from __future__ import annotations

from collections.abc import Collection

from allauth.account.models import EmailAddress
from django.db import IntegrityError, transaction
from django.db.models import Q

from accounts.core.actor import Actor
from accounts.credentials.actions import NOT_YOU, end_sessions
from accounts.events.actions import deliver, record
from accounts.models import Identity, User
from accounts.people import policy as people_policy
from accounts.people.actions import lock_actor_and_target
from accounts.people.policy import RolesLentTo
from accounts.sign_in.oidc import policy
from accounts.sign_in.oidc.protocol import IdentityClaims, SignInRejected
from portal.core.errors import refuse_if

OIDC_RULE = Actor(user=None, via="rule oidc")


@transaction.atomic
def account_of(claims: IdentityClaims, *, by: Actor = OIDC_RULE) -> User:
    """Returns the account, found by issuer and subject only, or a new account. An email that already belongs to another
    account is rejected, even if the issuer gives it to this user. Raises SignInRejected.
    """
    known = User.objects.filter(identities__issuer=claims.issuer, identities__subject=claims.subject)
    user = known.select_for_update(of=("self",), no_key=True).first()
    if user is None:
        return _new(claims, by)
    if not user.is_active:
        raise SignInRejected("account_suspended", user=user.pk)
    if user.is_superuser:
        raise SignInRejected("break_glass_account", user=user.pk)
    return user


def _new(claims: IdentityClaims, by: Actor) -> User:
    holders = EmailAddress.objects.filter(email__iexact=claims.email).values("user")
    holder = (User.objects.filter(email=claims.email) | User.objects.filter(pk__in=holders)).first()
    if holder is not None:
        changed = holder.identities.filter(issuer=claims.issuer).exists()
        raise SignInRejected("subject_changed" if changed else "address_of_another_account", user=holder.pk)
    try:
        with transaction.atomic():
            user = User.objects.create_user(email=claims.email, name=claims.name)
            Identity.objects.create(user=user, issuer=claims.issuer, subject=claims.subject)
    except IntegrityError as error:  # a concurrent sign-in has just created it
        raise SignInRejected("made_meanwhile") from error
    record(by, "account.added", user, after={"email": user.email, "issuer": claims.issuer})
    return user


@transaction.atomic
def connect_identity(user_id: int, *, issuer: str, subject: str, lent_to: RolesLentTo, by: Actor) -> Identity:
    """Connects this account to the user `subject` of the issuer: for accounts that are older than single sign-on.

    Raises Refused: not_found (404), not_allowed, own_account, break_glass, lacks_role (403), already_so (409).
    """
    by, user, _ = lock_actor_and_target(by, user_id)
    held = Identity.objects.filter(Q(user=user) | Q(subject=subject), issuer=issuer)
    refuse_if(policy.may_connect_identity(by, user, is_held=held.exists(), lent=lent_to(user)))
    row = Identity.objects.create(user=user, issuer=issuer, subject=subject)
    event = record(by, "account.connected", user, after={"issuer": issuer})
    text = f"You can now sign in to this account with your account at {issuer}.\n\n{NOT_YOU}"
    deliver(event, [user], subject="Single sign-on was connected to your account", body=text)
    return row


@transaction.atomic
def disconnect_identity(user_id: int, *, issuer: str, lent_to: RolesLentTo, by: Actor) -> None:
    """The issuer's user can no longer sign in; all sessions of the account end. To correct a mistake or to reconnect.

    Raises Refused: not_found (404), not_allowed, own_account, break_glass, lacks_role (403), already_so (409).
    """
    by, user, _ = lock_actor_and_target(by, user_id)
    held = Identity.objects.filter(user=user, issuer=issuer)
    refuse_if(policy.may_disconnect_identity(by, user, is_held=held.exists(), lent=lent_to(user)))
    held.delete()
    after = {"issuer": issuer, "sessions_ended": end_sessions(user)}
    event = record(by, "account.disconnected", user, after=after)
    deliver(event, [user], subject="Single sign-on was removed from your account", body=NOT_YOU)


@transaction.atomic
def set_group_roles(user_id: int, roles: Collection[str], *, by: Actor = OIDC_RULE) -> User:
    """Sets the staff roles that groups give; roles that administrators gave stay. The same roles again change nothing.

    Raises Refused: last_admin (409).
    """
    by, target, other_admins = lock_actor_and_target(by, user_id)
    by_hand = set(target.roles) - set(target.group_roles)
    wanted, from_groups = sorted(by_hand | set(roles)), sorted(set(roles) - by_hand)
    if (sorted(target.roles), sorted(target.group_roles)) == (wanted, from_groups):
        return target
    refuse_if(people_policy.may_set_roles(by, target, wanted, other_admins=other_admins))
    before, target.roles, target.group_roles = target.roles, wanted, from_groups
    target.save(update_fields=["roles", "group_roles"])
    record(by, "account.roles_set", target, before={"roles": before}, after={"roles": wanted, "by_groups": from_groups})
    return target
