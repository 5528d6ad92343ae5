"""Reads about accounts and their addresses."""

from __future__ import annotations

from allauth.account.models import EmailAddress
from django.db.models import Q, QuerySet

from accounts.models import Role, User


def search_people(text: str = "", role: str = "", *, suspended: bool | None = None) -> QuerySet[User]:
    """All accounts, or those with each word of `text` in name or address, with this role, suspended or not."""
    found = User.objects.all()
    for word in text.split():
        found = found.filter(Q(name__icontains=word) | Q(email__icontains=word))
    if role:
        found = found.filter(roles__contains=[role])
    return found if suspended is None else found.filter(is_active=not suspended)


def active_administrators() -> QuerySet[User]:
    return User.objects.filter(is_active=True, roles__contains=[Role.ADMIN])


def user_at_verified_address(email: str) -> User | None:
    """The account with this verified email; an unverified email is not matched."""
    return User.objects.filter(email=email, emailaddress__email=email, emailaddress__verified=True).first()


def verified_addresses(user: User | None) -> QuerySet[EmailAddress, str]:
    """For `email__in`: a user must not get what was sent to an email that the user has not verified."""
    found: QuerySet[EmailAddress, str] = EmailAddress.objects.filter(user=user, verified=True).values_list(
        "email", flat=True
    )
    return found
