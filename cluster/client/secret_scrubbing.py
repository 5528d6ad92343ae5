"""Removes the values of a Secret from messages of the cluster. Pure.

An admission webhook may quote the content of a refused Secret, and that text is stored, shown and logged.
"""

from __future__ import annotations

import base64
from typing import Any

PLACEHOLDER = "***"
# Shorter values occur in ordinary words.
LENGTH_MIN = 4


def scrub_secret_values(text: str, sent: Any) -> str:
    """`sent`: the object, or any other body of the request."""
    if not isinstance(sent, dict) or sent.get("kind") != "Secret":
        return text
    encoded = [str(value) for value in (sent.get("data") or {}).values()]
    values = {*encoded, *(base64.b64decode(value).decode(errors="replace") for value in encoded)}
    # The longest first, because one value may be a part of another.
    for value in sorted((one for one in values if len(one) >= LENGTH_MIN), key=len, reverse=True):
        text = text.replace(value, PLACEHOLDER)
    return text
