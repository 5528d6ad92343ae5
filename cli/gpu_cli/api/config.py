"""Address of the portal and token: from GPU_PORTAL and GPU_TOKEN or GPU_TOKEN_FILE, otherwise as saved by `gpu
login`.
"""

from __future__ import annotations

import ipaddress
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from gpu_cli.api.errors import NoToken, UsageError

READABLE_BY_OTHERS = 0o077


@dataclass(frozen=True)
class Portal:
    """`address` has no slash at its end. The repr does not contain the token, because it may appear in a traceback."""

    address: str
    token: str = field(repr=False)


def path(environment: Mapping[str, str]) -> Path:
    base = environment.get("XDG_CONFIG_HOME") or str(Path(environment.get("HOME") or Path.home()) / ".config")
    return Path(base) / "gpu" / "config.json"


def resolve(environment: Mapping[str, str], *, portal: str = "") -> Portal:
    """`portal`: the address from the command line. A saved token is used only for the portal with which it was
    saved.
    """
    kept = load(path(environment))
    named = portal or environment.get("GPU_PORTAL", "")
    if not named and kept is None:
        raise UsageError("No portal is set. Run 'gpu login', or set GPU_PORTAL and GPU_TOKEN.")
    address = validate_address(named) if named or kept is None else kept.address
    token = _from_environment(environment)
    if not token and kept is not None and kept.address == address:
        token = kept.token
    if not token:
        raise NoToken(f"No token for {address}. Run 'gpu login', or set GPU_TOKEN or GPU_TOKEN_FILE.")
    return Portal(address, validate_token(token))


def _from_environment(environment: Mapping[str, str]) -> str:
    if token := environment.get("GPU_TOKEN", "").strip():
        return token
    if file := environment.get("GPU_TOKEN_FILE", ""):
        try:
            return Path(file).read_text().strip()
        except (OSError, UnicodeDecodeError) as error:
            raise NoToken(f"Cannot read {file}, set in GPU_TOKEN_FILE: {type(error).__name__}.") from None
    return ""


def validate_address(text: str) -> str:
    """Returns the address without a slash at its end. http:// is accepted only for this machine, because the token
    would not be encrypted.
    """
    try:
        url = httpx.URL(text.strip())
    except httpx.InvalidURL:
        url = httpx.URL("")
    if url.scheme not in ("http", "https") or not url.host or url.userinfo or url.query or url.fragment:
        raise UsageError("Enter an address like https://gpu.example.org, without user, query or fragment.")
    if url.scheme == "http" and not _is_this_machine(url.host):
        raise UsageError(f"http:// would send the token unencrypted to {url.host}. Use https://.")
    return str(url).rstrip("/")


def _is_this_machine(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def validate_token(text: str) -> str:
    """Refuses a text that a header cannot contain: the error of an HTTP library would contain the token."""
    token = text.strip()
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise NoToken("This is not a token. A token starts with gpt_ and has no spaces.")
    return token


def load(file: Path) -> Portal | None:
    """Returns None if `gpu login` was never run."""
    try:
        if os.name == "posix" and file.stat().st_mode & READABLE_BY_OTHERS:
            raise NoToken(
                f"Other users can read the token in {file}. Run 'chmod 600 {file}', and revoke the token if in doubt."
            )
        kept = json.loads(file.read_text())
        return Portal(str(kept["portal"]), str(kept["token"]))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError):
        # The message does not contain the content, because it includes a token.
        raise NoToken(f"Cannot read {file}. Run 'gpu login' again.") from None


def save(file: Path, portal: Portal) -> None:
    """Writes the file with mode 0600 from the start. It is renamed into place, so an error leaves the old file
    unchanged.
    """
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    new = file.with_name(f"{file.name}.{os.getpid()}")
    new.unlink(missing_ok=True)
    with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as text:
        json.dump({"portal": portal.address, "token": portal.token}, text)
    new.replace(file)
