"""The text of an API token: `gpt_<prefix>_<secret>`. Pure functions. Only the secret's digest is stored."""

from __future__ import annotations

import hashlib
import re
import secrets
import string
from dataclasses import dataclass

ALPHABET = string.ascii_lowercase + string.digits
PREFIX_LENGTH = 8
# 32 random bytes: a plain SHA-256 is enough, since 256 bits cannot be guessed.
SECRET_BYTES = 32
SHAPE = re.compile(r"gpt_([a-z0-9]{8})_([A-Za-z0-9_-]{43})")


@dataclass(frozen=True)
class TokenText:
    prefix: str
    secret: str

    def __str__(self) -> str:
        return f"gpt_{self.prefix}_{self.secret}"

    def __repr__(self) -> str:
        return f"TokenText({self.prefix}…)"

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.secret.encode()).hexdigest()


def new_token() -> TokenText:
    prefix = "".join(secrets.choice(ALPHABET) for _ in range(PREFIX_LENGTH))
    return TokenText(prefix, secrets.token_urlsafe(SECRET_BYTES))


def parse_token(text: str) -> TokenText | None:
    found = SHAPE.fullmatch(text)
    return TokenText(*found.groups()) if found else None
