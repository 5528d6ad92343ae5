"""The name that KubeSpawner gives the claim of a server, from its template and how it makes names safe. Pure."""

from __future__ import annotations

import hashlib
import re
import string

SCHEMES = ("safe", "escape")
# Of a name, and of what precedes the hash in one that had to be changed.
FIELD_MAX = 48
HASH_LENGTH = 8
_FIELD = re.compile(r"\{([^{}]*)\}")
_SAFE = re.compile(r"[a-z]([a-z0-9-]*[a-z0-9])?")
_ESCAPED_SAFE = frozenset(string.ascii_lowercase + string.digits)


def claim_name(template: str, user: str, server: str, *, scheme: str) -> str:
    """`server`: "" for the default one. "" if the template has fields that the names do not give, such as {userid}."""
    fields = _escaped(user, server) if scheme == "escape" else _safe(user, server)
    raw = {"unescaped_username": user, "unescaped_servername": server}
    both = {"safe": _safe(user, server), "escaped": _escaped(user, server)}
    prefixed = {f"{prefix}_{name}": value for prefix, values in both.items() for name, value in values.items()}
    known = {**raw, **prefixed, **fields}
    if any(name not in known for name in _FIELD.findall(template)):
        return ""
    found = _FIELD.sub(lambda match: known[match[1]], template)
    return found if template.endswith("-") else found.rstrip("-")


def _safe(user: str, server: str) -> dict[str, str]:
    """KubeSpawner 7 and later."""
    username, servername = _slug(user), _slug(server) if server else ""
    joined = f"{username}--{servername}" if server else username
    if len(username) + len(servername) + 2 > FIELD_MAX:
        joined = _joined_slug(user, server)
    return {"username": username, "servername": servername, "user_server": joined}


def _escaped(user: str, server: str) -> dict[str, str]:
    """Before KubeSpawner 7: each unsafe byte is written as - and its hexadecimal code."""
    username, servername = _escape(user), _escape(server)
    joined = f"{username}--{servername}" if servername else username
    return {"username": username, "servername": servername, "user_server": joined}


def _escape(text: str) -> str:
    return "".join(one if one in _ESCAPED_SAFE else _bytes(one) for one in text)


def _bytes(character: str) -> str:
    return "".join(f"-{byte:02x}" for byte in character.encode())


def _slug(text: str) -> str:
    if "--" not in text and len(text) <= FIELD_MAX and _SAFE.fullmatch(text):
        return text
    return f"{_words(text, FIELD_MAX - HASH_LENGTH - 3)}---{_hash(text.encode())}"


def _joined_slug(user: str, server: str) -> str:
    each = (FIELD_MAX - HASH_LENGTH - 1) // 2 - 2
    joined = f"{_words(user, each)}--{_words(server, each)}"
    return f"{joined}---{_hash(user.encode() + bytes([0xFF]) + server.encode())}"


def _words(text: str, limit: int) -> str:
    found = re.sub(r"[^a-z0-9]+", "-", text.lower()).lstrip("-")[:limit].rstrip("-")
    if found and not found[0].isalpha():
        found = f"x-{found[: limit - 2]}"
    return found or "x"


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:HASH_LENGTH]
