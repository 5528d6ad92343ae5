"""Secrets in the environment: the value of NAME, or the content of the file that NAME_FILE names."""

from __future__ import annotations

import base64
import os
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured


def secret(name: str, default: str | None = None) -> str:
    """Raises ImproperlyConfigured if the file cannot be read, or if there is neither, nor a default."""
    path = os.environ.get(f"{name}_FILE")
    if path:
        try:
            return Path(path).read_text().strip()
        except OSError as error:
            raise ImproperlyConfigured(f"{name}_FILE names {path}, which cannot be read: {error.strerror}") from error
    value = os.environ.get(name, default)
    if value is None:
        raise ImproperlyConfigured(f"Set {name} or {name}_FILE.")
    return value


def former_keys(name: str) -> list[str]:
    """The keys before that one, in NAME_FALLBACKS: each is still valid, but nothing new is made with it."""
    return secret(f"{name}_FALLBACKS", default="").split()


def require_encryption_keys(name: str, *keys: str) -> None:
    """Raises ImproperlyConfigured unless each is empty or 32 bytes in base64."""
    if not all(_is_encryption_key(key) for key in keys if key):
        raise ImproperlyConfigured(f"{name} is no key: it has to be 32 bytes in base64.")


def _is_encryption_key(text: str) -> bool:
    try:
        return len(base64.b64decode(text, validate=True)) == 32
    except ValueError:
        return False
