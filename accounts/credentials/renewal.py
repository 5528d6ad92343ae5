"""Encrypts the seeds of second factors again after a new key. The seeds do not change."""

from __future__ import annotations

from allauth.mfa.models import Authenticator
from allauth.mfa.utils import decrypt, encrypt
from django.db import transaction
from nacl.exceptions import CryptoError

# What allauth encrypts in `data`: of a one-time code, and of recovery codes.
ENCRYPTED = ("secret", "seed")


def renew_second_factors() -> tuple[int, int]:
    """Returns how many rows were encrypted again, and how many no key decrypts. One row at a time, each locked, since a
    sign-in writes there which codes are used. May be run again.
    """
    renewed = unreadable = 0
    for pk in list(Authenticator.objects.order_by("pk").values_list("pk", flat=True)):
        with transaction.atomic():
            row = Authenticator.objects.select_for_update(no_key=True).filter(pk=pk).first()
            if row is None:
                continue
            try:
                row.data |= {name: encrypt(decrypt(row.data[name])) for name in ENCRYPTED if name in row.data}
            except CryptoError:
                unreadable += 1
                continue
            row.save(update_fields=["data"])
            renewed += 1
    return renewed, unreadable
