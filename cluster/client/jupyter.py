"""Reads the activity of a notebook's server without counting as activity. The only file that calls notebooks.

The server runs code of a team: a response has a limit of time and size, a redirect is not followed, and only numbers,
times and a few known words are read from it. Jupyter counts every call of its API as activity, except `api/status` and
calls with `no_track_activity`.
"""

from __future__ import annotations

import json
import socket
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from http.client import HTTPException, HTTPResponse
from io import BytesIO
from typing import Any

from cluster.manifests.namespace import NOTEBOOK_PORT

ANSWER_WITHIN_S = 3.0
ANSWER_BYTES_MOST = 256 * 1024
LISTED_MOST = 500
CHUNK_BYTES = 16 * 1024
# A kernel that was never used stays "starting". Any other word counts as work.
BUSY, IDLE, UNKNOWN = "busy", "idle", "unknown"
RESTING_STATES = frozenset({IDLE, "starting", "restarting", "autorestarting", "dead"})


class NotebookUnreachable(Exception):
    """No response, or one that cannot be parsed; the text describes what came instead."""


@dataclass(frozen=True)
class Kernel:
    state: str
    last_activity: datetime
    connections: int

    @property
    def is_computing(self) -> bool:
        """True if the kernel may be computing: an unknown state counts as computing."""
        return self.state not in RESTING_STATES


@dataclass(frozen=True)
class NotebookActivity:
    """`last_activity`: of the server, including any API call, for example by an open browser tab. `connections`: of
    browsers to kernels. `terminals`: when each was last written to or read from.
    """

    last_activity: datetime
    connections: int
    kernels: tuple[Kernel, ...] = ()
    terminals: tuple[datetime, ...] = ()


def read_activity(ip: str, token: str, *, port: int = NOTEBOOK_PORT) -> NotebookActivity:
    """Sends three requests of at most 3 s each. Raises NotebookUnreachable."""
    status = _asked(ip, port, "/api/status", token)
    kernels = _asked(ip, port, "/api/kernels?no_track_activity=1", token)
    # An image without terminals has no such path.
    terminals = _asked(ip, port, "/api/terminals?no_track_activity=1", token, absent=[])
    try:
        return NotebookActivity(
            last_activity=_moment(status["last_activity"]),
            connections=_count(status["connections"]),
            kernels=tuple(_kernel(one) for one in _items(kernels)),
            terminals=tuple(_moment(one["last_activity"]) for one in _items(terminals)),
        )
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise NotebookUnreachable("It did not respond like a Jupyter server.") from error


def _kernel(told: Any) -> Kernel:
    state = told["execution_state"]
    known = state if state == BUSY or state in RESTING_STATES else UNKNOWN
    return Kernel(known, _moment(told["last_activity"]), _count(told["connections"]))


def _items(told: Any) -> list[Any]:
    if not isinstance(told, list) or len(told) > LISTED_MOST:
        raise ValueError("no list, or one too long")
    return told


def _moment(text: Any) -> datetime:
    found = datetime.fromisoformat(text)
    return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)


def _count(number: Any) -> int:
    if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number <= 1_000_000:
        raise ValueError("no count")
    return number


# ---- one request to Jupyter ------------------------------------------------------------------------------------------


def _asked(ip: str, port: int, path: str, token: str, *, absent: Any = None) -> Any:
    status, body = _answer(ip, port, path, token)
    if status == 404 and absent is not None:
        return absent
    if status != 200:
        raise NotebookUnreachable(f"It responded with status {status}.")
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise NotebookUnreachable("It did not respond like a Jupyter server.") from error


def _answer(ip: str, port: int, path: str, token: str) -> tuple[int, bytes]:
    """Uses its own socket: one deadline covers the whole response, however slowly its parts arrive."""
    ends = time.monotonic() + ANSWER_WITHIN_S
    host = f"[{ip}]" if ":" in ip else ip
    lines = (
        f"GET {path} HTTP/1.0",
        f"Host: {host}:{port}",
        f"Authorization: token {token}",
        "Accept: application/json",
        "Connection: close",
    )
    try:
        with socket.create_connection((ip, port), timeout=ANSWER_WITHIN_S) as connection:
            connection.settimeout(_left(ends))
            connection.sendall(("\r\n".join(lines) + "\r\n\r\n").encode("ascii"))
            return _parsed(_received(connection, ends))
    except TimeoutError as error:
        raise NotebookUnreachable(f"It did not respond within {ANSWER_WITHIN_S:g} s.") from error
    except (OSError, HTTPException) as error:
        raise NotebookUnreachable("It does not respond.") from error


def _received(connection: socket.socket, ends: float) -> bytes:
    parts: list[bytes] = []
    size = 0
    while True:
        connection.settimeout(_left(ends))
        part = connection.recv(CHUNK_BYTES)
        if not part:
            return b"".join(parts)
        parts.append(part)
        size += len(part)
        if size > ANSWER_BYTES_MOST:
            raise NotebookUnreachable(f"Its response was larger than {ANSWER_BYTES_MOST // 1024} KiB.")


def _left(ends: float) -> float:
    left = ends - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


class _Received:
    """The part of a socket that HTTPResponse needs: the bytes, readable as a file."""

    def __init__(self, answer: bytes) -> None:
        self._answer = answer

    def makefile(self, *_arguments: Any, **_options: Any) -> BytesIO:
        return BytesIO(self._answer)


def _parsed(answer: bytes) -> tuple[int, bytes]:
    response = HTTPResponse(_Received(answer), method="GET")  # type: ignore[arg-type]
    response.begin()
    return response.status, response.read()
