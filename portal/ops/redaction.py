"""Removes secrets from the log lines of all loggers: values whose names suggest a secret, and texts that look like one.

It runs last, after exceptions were converted to text. In doubt it hides the value: a hidden value costs some extra
investigation, a logged secret must be rotated.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from structlog.typing import EventDict

HIDDEN = "***"
SECRET_WORDS = ("password", "passwd", "token", "secret", "authorization", "cookie", "ticket", "credential", "digest")
# `key` alone would hide `keyset` and `monkey`.
SECRET_NAME = re.compile(
    rf"{'|'.join(SECRET_WORDS)}|(^|[^a-z])(api|private|secret|signing|session|access)?_?-?key($|[^a-z])", re.I
)
HARMLESS_ENDINGS = ("_prefix", "_name", "_count", "_at")
DEPTH_MAX = 8
TEXT_MAX = 20_000

# name=value, name: value and "name": "value" within a text, with any level of quotes and escapes. No match crosses the
# end of a line: the last line of a traceback states the error.
# A name is tried once and as a whole (the look-behind and `++`): anybody may send a long word that contains "token" a
# thousand times, and the time must not grow with its square.
_WORDS = "|".join([*SECRET_WORDS, *(f"{kind}[_-]?key" for kind in ("api", "private", "secret", "session", "access"))])
_NAME = rf"(?<![\w.-])(?=[\w.-]*?(?:{_WORDS}))[\w.-]++"
_IS = r"\\*[\"']?\s*[=:]\s*"
PATTERNS = [
    (re.compile(r"\bgpt_([a-z0-9]{8})_[A-Za-z0-9_-]+"), r"gpt_\1_***"),
    (re.compile(r"\b(Bearer|Basic)\s+[^\s\"',;]+", re.I), r"\1 ***"),
    # As Jupyter and GitHub write it. Not after any "token", which is a common word.
    (re.compile(r"(\bauthorization\\*[\"']?\s*[=:]\s*\\*[\"']?token\s+)[^\s\"',;]+", re.I), r"\1***"),
    (re.compile(r"(\b[a-z][a-z0-9+.-]{0,20}://[^\s:/@]*:)[^\s/@]+@", re.I), r"\1***@"),
    (re.compile(rf"([?&]{_NAME}=)[^&\s\"'#]+", re.I), r"\1***"),
    (re.compile(r"([?&]code=)[^&\s\"'#]+"), r"\1***"),  # the authorization code in an issuer's redirect
    (re.compile(rf"({_NAME}{_IS})[{{\[(].*", re.I), r"\1***"),
    (re.compile(rf"({_NAME}{_IS}\\*)([\"'])(?:\\.|(?!\2).)*", re.I), r"\1\2***"),
    (re.compile(rf"({_NAME}{_IS})(?![\"'\\{{\[(])[^\s,;&\"')}}\]]+", re.I), r"\1***"),
    (re.compile(r"(?<![\w-])(?=[\w-]*?eyJ)[\w-]++\.[\w-]++\.[\w-]*+"), HIDDEN),  # a service account's token
    (re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(-----END [A-Z ]*PRIVATE KEY-----|$)", re.S), HIDDEN),
]


class SecretRedactor:
    """A structlog processor. `known`: the process's own secrets, hidden wherever they appear in a text."""

    def __init__(self, known: tuple[str, ...] = ()) -> None:
        self.known = tuple(sorted({secret for secret in known if len(secret) >= 8}, key=len, reverse=True))

    def __call__(self, _logger: object, _method: str, event: EventDict) -> EventDict:
        # structlog's own bookkeeping (_record, _from_structlog) passes; it is removed before the line is written.
        return {name: value if name.startswith("_") else self.clean(name, value) for name, value in event.items()}

    def clean(self, name: str, value: Any, depth: int = 0) -> Any:
        if value is None or isinstance(value, bool | int | float):
            return HIDDEN if value is not None and sounds_secret(name) and not isinstance(value, bool) else value
        if sounds_secret(name):
            return HIDDEN
        if isinstance(value, str):
            return self.text(value)
        if depth >= DEPTH_MAX:
            return HIDDEN
        if isinstance(value, Mapping):
            return {self.text(str(key)): self.clean(str(key), inner, depth + 1) for key, inner in value.items()}
        if isinstance(value, list | tuple | set | frozenset):
            return [self.clean("", inner, depth + 1) for inner in value]
        if isinstance(value, bytes):
            return self.text(value.decode(errors="replace"))
        return self.text(str(value))

    def text(self, text: str) -> str:
        if len(text) > TEXT_MAX:
            text = f"{text[:TEXT_MAX]}… ({len(text)} characters)"
        return self.whole_text(text)

    def whole_text(self, text: str) -> str:
        """The same without a limit of the length."""
        for secret in self.known:
            text = text.replace(secret, HIDDEN)
        for pattern, hidden in PATTERNS:
            text = pattern.sub(hidden, text)
        return text


def sounds_secret(name: str) -> bool:
    lower = name.lower()
    return not lower.endswith(HARMLESS_ENDINGS) and SECRET_NAME.search(lower) is not None
