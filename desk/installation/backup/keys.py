"""Keys of this process by fingerprint: what a backup needs is named without containing it."""

from __future__ import annotations

import hashlib

from django.conf import settings
from nacl.encoding import Base64Encoder
from nacl.public import PrivateKey

# What is lost without the key.
LOSSES = {
    "SECRET_KEY": "All users have to sign in again, and codes for passwords no longer work.",
    "NOTEBOOK_TOKEN_KEY": "Notebooks that run cannot be opened until they are restarted.",
    "SECRETS_PRIVATE_KEY": "Secrets of teams and registry credentials cannot be decrypted.",
    "SECOND_FACTOR_KEY": "Second factors cannot be checked: people have to add new ones.",
}
_PAIR = "SECRETS_PRIVATE_KEY"


def inventory() -> dict[str, list[str]]:
    """Fingerprints by name, the current key first. An empty list: this process has none."""
    found = {}
    for name in LOSSES:
        current = getattr(settings, name)
        keys = [current, *getattr(settings, f"{name}_FALLBACKS")] if current else []
        if name == _PAIR:
            # Web has the public key alone; both parts have one fingerprint.
            public = [PrivateKey(key.encode(), Base64Encoder).public_key.encode(Base64Encoder).decode() for key in keys]
            keys = public or [settings.SECRETS_PUBLIC_KEY] if public or settings.SECRETS_PUBLIC_KEY else []
        found[name] = [fingerprint(name, key) for key in keys]
    return found


def keys_at_hand() -> dict[str, list[str]]:
    """Those that decrypt and sign here: a public key alone does not."""
    found = inventory()
    return found if settings.SECRETS_PRIVATE_KEY else {**found, _PAIR: []}


def fingerprint(name: str, key: str) -> str:
    """16 hexadecimal digits of a digest, from which a random key cannot be found."""
    return hashlib.sha256(f"fingerprint of {name} {key}".encode()).hexdigest()[:16]
