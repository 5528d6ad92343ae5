"""The text that is kept of a log: the last part, without secrets, as UTF-8 that PostgreSQL can store. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection

from portal.ops.redaction import HIDDEN, SecretRedactor

TEXT_BYTES = 256 * 1024
_INSIDE_KEY = re.compile(r"[A-Za-z0-9+/=]*\s*")
_END_OF_KEY = re.compile(r"-----END [A-Z ]{0,40}PRIVATE KEY-----")


def kept_text(data: bytes, *, is_truncated: bool, secrets: Collection[str]) -> tuple[str, bool]:
    """`data`: whole lines. Returns the text, and whether earlier lines are missing.

    `secrets`: values that are hidden wherever they appear, as is text that looks like a secret. Lines of a value are
    hidden too: the text may start in the middle of it.
    """
    text = data.decode(errors="replace").replace("\0", "")
    if is_truncated:
        text = _without_end_of_key(text)
    known = {*secrets, *(line.strip() for value in secrets for line in value.splitlines())}
    text = SecretRedactor(tuple(known)).whole_text(text)
    encoded = text.encode()
    if len(encoded) <= TEXT_BYTES:
        return text, is_truncated
    # Hidden values and replaced bytes may be longer than the original.
    end = encoded[-TEXT_BYTES:]
    return (end.partition(b"\n")[2] or end).decode(errors="ignore"), True


def _without_end_of_key(text: str) -> str:
    """Hides the rest of a private key whose beginning is missing, so that no pattern recognizes it."""
    read = 0
    for line in text.splitlines(keepends=True):
        read += len(line)
        if _END_OF_KEY.match(line):
            return f"{HIDDEN}\n{text[read:]}"
        if not _INSIDE_KEY.fullmatch(line):
            break
    return text
