"""The format of keys that encrypt. Pure."""

from __future__ import annotations

import base64


def is_key(text: str) -> bool:
    """32 bytes in base64."""
    try:
        return len(base64.b64decode(text, validate=True)) == 32
    except ValueError:
        return False
