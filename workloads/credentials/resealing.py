"""Encrypts stored secrets and registry credentials again after a new key pair. The values do not change."""

from __future__ import annotations

from dataclasses import dataclass

from django.db import transaction

from workloads.credentials import sealing
from workloads.models import RegistryCredential, TeamSecret


@dataclass(frozen=True)
class Resealed:
    """Numbers of rows. `unreadable`: no key of this process decrypts them."""

    renewed: int = 0
    unreadable: int = 0


def reseal_all() -> Resealed:
    """One row at a time, each locked: a value that somebody replaces meanwhile stays replaced. May be run again."""
    renewed = unreadable = 0
    for model in (TeamSecret, RegistryCredential):
        for pk in list(model._base_manager.order_by("pk").values_list("pk", flat=True)):
            with transaction.atomic():
                row = model._base_manager.select_for_update(no_key=True).filter(pk=pk).first()
                if row is None:
                    continue
                again = sealing.sealed_again(bytes(row.sealed))
                if again is not None:
                    model._base_manager.filter(pk=pk).update(sealed=again)
                    renewed += 1
                elif sealing.unseal(bytes(row.sealed)) is None:
                    unreadable += 1
    return Resealed(renewed, unreadable)
