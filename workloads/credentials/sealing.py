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
    """Returns None if this process has no key, or keys of other pairs."""
    for key in _private_keys():
        try:
            return bytes(SealedBox(key).decrypt(sealed)).decode()
        except CryptoError:
            continue
    return None


def sealed_again(sealed: bytes) -> bytes | None:
    """Encrypted for the current private key. None if no key decrypts it, or if it is already."""
    keys = _private_keys()
    if not keys or (value := unseal(sealed)) is None:
        return None
    try:
        SealedBox(keys[0]).decrypt(sealed)
    except CryptoError:
        return bytes(SealedBox(keys[0].public_key).encrypt(value.encode()))
    return None


def _private_keys() -> list[PrivateKey]:
    """The current one first. Without it, none: those of before do not go on alone."""
    if not settings.SECRETS_PRIVATE_KEY:
        return []
    texts = (settings.SECRETS_PRIVATE_KEY, *settings.SECRETS_PRIVATE_KEY_FALLBACKS)
    return [PrivateKey(text.encode(), encoder=Base64Encoder) for text in texts]
