"""Sealed values: the public key encrypts them, only the private key decrypts them. Leaf."""

from __future__ import annotations

from django.conf import settings
from nacl.encoding import Base64Encoder
from nacl.exceptions import CryptoError
from nacl.public import PrivateKey, PublicKey, SealedBox


def can_seal() -> bool:
    return bool(settings.SECRETS_PUBLIC_KEY)


def seal(value: str) -> bytes:
    """Encrypting the same value again gives different bytes."""
    key = PublicKey(settings.SECRETS_PUBLIC_KEY.encode(), encoder=Base64Encoder)
    return bytes(SealedBox(key).encrypt(value.encode()))


def unseal(sealed: bytes) -> str | None:
    """Returns None if this process has no key, or the key of another pair."""
    if not settings.SECRETS_PRIVATE_KEY:
        return None
    key = PrivateKey(settings.SECRETS_PRIVATE_KEY.encode(), encoder=Base64Encoder)
    try:
        return bytes(SealedBox(key).decrypt(sealed)).decode()
    except CryptoError:
        return None
