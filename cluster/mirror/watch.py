"""Follows one kind in the API server with three nested generators, one concern each.

`follow_kind` never ends by itself: after any failure it yields TROUBLE and starts again. `_list_then_watch` lists,
marks the end of the list, then keeps a watch open from there, connection after connection. `_one_connection` turns the
lines of one connection into notes. None of them knows records, rows or threads; `watcher.py` connects them to the
mirror.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

import structlog

from cluster.client.errors import ClusterRefused, ClusterUnavailable, Gone, NotFound
from cluster.mirror.records.kinds import MirroredKind
from cluster.mirror.records.types import Raw

TOO_OLD = "The API server no longer has the changes since the last list; all objects are listed again."
_FAILURES = (ClusterUnavailable, ClusterRefused, ValueError)
log = structlog.get_logger(__name__)


class WatchSource(Protocol):
    """The two calls of `cluster.client.kube.Kube` that this module needs."""

    def list_page(
        self, path: str, *, limit: int = ..., continue_token: str = ..., field_selector: str = ...
    ) -> dict[str, Any]: ...

    def watch_lines(
        self,
        path: str,
        *,
        resource_version: str,
        timeout_s: float,
        field_selector: str = ...,
        ends_after_s: float | None = ...,
    ) -> Iterator[bytes]: ...


@dataclass(frozen=True)
class WatchLimits:
    """The server is asked to end a watch after `quiet_s`: a regular end proves that the connection works. After
    `silence_s` without a line the connection counts as dead. Events missed by a dead connection are read within a
    minute of the server's return.
    """

    silence_s: float = 45
    quiet_s: float = 30
    page: int = 500
    compare_every_s: float = 24 * 3600
    first_wait_s: float = 0.5
    longest_wait_s: float = 30


class NoteType(StrEnum):
    LISTING = "listing"  # a list begins; what is not in it when it ends is gone
    SEEN = "seen"
    REMOVED = "removed"
    LISTED = "listed"  # the list is complete
    HEARD = "heard"  # nothing happened, and the server confirmed it
    TROUBLE = "trouble"  # `text` is for users
    AGAIN = "again"  # from a relist of a namespace, not from the watch
    COMPARED = "compared"  # the relist of the namespace in `text` is complete


@dataclass(frozen=True, slots=True)
class WatchNote:
    kind: MirroredKind
    what: NoteType
    resource_version: str = ""
    raw: Raw | None = None
    text: str = ""


Pause = Callable[[float], bool]


def follow_kind(
    source: WatchSource, kind: MirroredKind, *, pause: Pause, limits: WatchLimits = WatchLimits()
) -> Generator[WatchNote, None, None]:
    """Yields notes of one kind until `pause(seconds)` returns True. `pause` waits; True means stop."""
    wait = _Wait(pause, limits)
    while not wait.is_to_stop:
        try:
            # Returns when the whole list is to be compared again.
            yield from _list_then_watch(source, kind, wait, limits)
        except Gone:
            # Normal after a long interruption. The failure wait prevents a loop with a server that answers so after
            # every list. Until the list is complete the events in between are unknown.
            yield WatchNote(kind, NoteType.TROUBLE, text=TOO_OLD)
            wait.after_failure()
        except _FAILURES as error:
            if _is_not_installed(kind, error):
                # Where it was listed before, its objects are gone too.
                yield WatchNote(kind, NoteType.LISTING)
                yield WatchNote(kind, NoteType.LISTED)
                wait.quietly()
                continue
            yield WatchNote(kind, NoteType.TROUBLE, text=_sentence(error))
            wait.after_failure(error)


def _is_not_installed(kind: MirroredKind, error: Exception) -> bool:
    return kind.is_optional and isinstance(error, NotFound)


def _list_then_watch(source: WatchSource, kind: MirroredKind, wait: _Wait, limits: WatchLimits) -> Iterator[WatchNote]:
    version = ""
    for note in _list(source, kind, limits):
        version = note.resource_version or version
        yield note
    compare_at = time.monotonic() + limits.compare_every_s * random.uniform(0.9, 1.1)
    while time.monotonic() < compare_at and not wait.is_to_stop:
        opened_at = time.monotonic()
        reached = ""
        try:
            if not kind.has_bookmarks:
                reached = _version_now(source, kind)
            for note in _one_connection(source, kind, version, limits):
                wait.succeeded()
                # A repeated or late event must not lower the version.
                version = later_version(version, note.resource_version)
                yield note
                if time.monotonic() >= compare_at:
                    return
        except _FAILURES as error:
            if _is_not_installed(kind, error):
                raise
            if time.monotonic() - opened_at >= limits.silence_s:
                # The connection was open for that long.
                wait.succeeded()
            yield from _until_it_answers(source, kind, wait, error)
        else:
            # The server ended the watch regularly, so every event from before its start has arrived. This is said for
            # all kinds: the server sends its last bookmark shortly before the end or, on a busy machine, not at all.
            # Without `reached` the version of a quiet kind without bookmarks would be too old after a compaction, and
            # the kind would be listed again every few minutes.
            version = later_version(version, reached)
            yield WatchNote(kind, NoteType.HEARD, version)
            if time.monotonic() - opened_at < limits.first_wait_s:
                # The server normally ends watches after `quiet_s`; a watch that ends at once is a failure.
                wait.after_failure()
            else:
                wait.succeeded()


def _list(source: WatchSource, kind: MirroredKind, limits: WatchLimits) -> Iterator[WatchNote]:
    token = ""
    version = ""
    while True:
        page = source.list_page(kind.path, limit=limits.page, continue_token=token, field_selector=kind.field_selector)
        metadata = page.get("metadata") or {}
        if not version:
            version = str(metadata.get("resourceVersion", ""))
            if not version:
                raise ValueError("A list without a resource version.")
            yield WatchNote(kind, NoteType.LISTING, version)
        for raw in page.get("items") or []:
            yield WatchNote(kind, NoteType.SEEN, raw=raw)
        token = metadata.get("continue") or ""
        if not token:
            yield WatchNote(kind, NoteType.LISTED, version)
            return


def _version_now(source: WatchSource, kind: MirroredKind) -> str:
    """Returns the server's current resource version, read by a list with limit 1."""
    page = source.list_page(kind.path, limit=1, field_selector=kind.field_selector)
    return str((page.get("metadata") or {}).get("resourceVersion", ""))


def _one_connection(source: WatchSource, kind: MirroredKind, version: str, limits: WatchLimits) -> Iterator[WatchNote]:
    lines = source.watch_lines(
        kind.path,
        resource_version=version,
        timeout_s=limits.silence_s,
        field_selector=kind.field_selector,
        ends_after_s=limits.quiet_s,
    )
    for line in lines:
        if not line.strip():
            continue
        event, raw = _parse(line)
        version = str((raw.get("metadata") or {}).get("resourceVersion", ""))
        match event:
            case "ADDED" | "MODIFIED":
                yield WatchNote(kind, NoteType.SEEN, version, raw)
            case "DELETED":
                yield WatchNote(kind, NoteType.REMOVED, version, raw)
            case "BOOKMARK":
                yield WatchNote(kind, NoteType.HEARD, version)
            case "ERROR" if raw.get("code") == 410:
                raise Gone(str(raw.get("message", "")))
            case "ERROR":
                raise ClusterUnavailable(str(raw.get("message") or "The watch ended with an error."))
            case unknown:
                log.warning("watch_event_unknown", kind=kind.name, type=unknown[:40])


def _parse(line: bytes) -> tuple[str, Raw]:
    event = json.loads(line)
    if not isinstance(event, dict) or not isinstance(event.get("object"), dict):
        raise ValueError("A line of a watch contains no object.")
    return str(event.get("type", "")), event["object"]


def _until_it_answers(source: WatchSource, kind: MirroredKind, wait: _Wait, error: Exception) -> Iterator[WatchNote]:
    """Lists one object until the server answers. Yields TROUBLE if it does not, or if connections break repeatedly."""
    is_trouble = wait.has_failed
    while True:
        if is_trouble:
            yield WatchNote(kind, NoteType.TROUBLE, text=_sentence(error))
        if wait.after_failure(error):
            return
        try:
            source.list_page(kind.path, limit=1, field_selector=kind.field_selector)
        except _FAILURES as still:
            if _is_not_installed(kind, still):
                raise
            error, is_trouble = still, True
        else:
            # Without this a restored connection would look broken until its next event or bookmark.
            yield WatchNote(kind, NoteType.HEARD)
            return


def later_version(one: str, other: str) -> str:
    """Returns the later of two resource versions, compared as numbers; else `other`, or `one` if `other` is ""."""
    if one.isdigit() and other.isdigit():
        return one if int(one) >= int(other) else other
    return other or one


def _sentence(error: Exception) -> str:
    if isinstance(error, ClusterRefused):
        return f"The API server rejected the request ({error.status}): {error.text}"[:300]
    if isinstance(error, ClusterUnavailable):
        return str(error)[:300]
    return f"The API server's response could not be read: {type(error).__name__}."


class _Wait:
    """A wait that grows with each failure in a row, up to a limit, with jitter so that kinds do not retry together, and
    as long as the server asked for.
    """

    def __init__(self, pause: Pause, limits: WatchLimits) -> None:
        self._pause = pause
        self._limits = limits
        self._failures = 0
        self.is_to_stop = False

    @property
    def has_failed(self) -> bool:
        return self._failures > 0

    def succeeded(self) -> None:
        self._failures = 0

    def quietly(self) -> None:
        self._failures = 0
        self.is_to_stop = self._pause(self._limits.quiet_s)

    def after_failure(self, error: Exception | None = None) -> bool:
        asked_s = error.after_s if isinstance(error, ClusterUnavailable) else 0.0
        seconds = min(self._limits.first_wait_s * 2 ** min(self._failures, 10), self._limits.longest_wait_s)
        self._failures += 1
        self.is_to_stop = self._pause(max(seconds * random.uniform(0.5, 1.0), asked_s * random.uniform(1.0, 1.2)))
        return self.is_to_stop
