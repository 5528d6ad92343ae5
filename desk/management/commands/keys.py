"""`manage.py keys`: after a new key, encrypts again what was encrypted with the one before.

Run it in web for second factors, and in the worker for secrets of teams and registry credentials: each has only its own
keys. Exits with 1 if a value cannot be decrypted: then the key of before is still needed.
"""

from __future__ import annotations

import sys
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from accounts.credentials.renewal import renew_second_factors
from workloads.credentials.resealing import reseal_all


class Command(BaseCommand):
    help = "Encrypt again, with the current keys of this process, what was encrypted with those of before."

    def handle(self, *args: Any, **options: Any) -> None:
        found: dict[str, tuple[int, int]] = {}
        if settings.SECOND_FACTOR_KEY:
            found["second factors"] = renew_second_factors()
        if settings.SECRETS_PRIVATE_KEY:
            sealed = reseal_all()
            found["secrets and registry credentials"] = sealed.renewed, sealed.unreadable
        if not found:
            raise CommandError("This process has no key that encrypts stored values. Run it in web and in the worker.")
        for what, (renewed, unreadable) in found.items():
            self.stdout.write(f"{what}: {renewed} encrypted with the current key, {unreadable} cannot be decrypted.")
        if any(unreadable for _renewed, unreadable in found.values()):
            sys.exit(1)
