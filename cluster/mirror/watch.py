"""Follow one kind in the API server: three nested generators, one concern each.

`follow` never ends: whatever went wrong, it says so and begins again. `_list_then_watch` lists, marks the end of the
list, then keeps a watch open from there, connection after connection. `_one_connection` turns the lines of one
connection into notes. None of them knows records, rows or threads; `watcher.py` connects them to the mirror.
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

from cluster.client.errors import ClusterRefused, ClusterUnavailable, Gone
from cluster.mirror.records.kinds import MirroredKind
from cluster.mirror.records.types import Raw

TOO_OLD = "The API server no longer has the changes since the last list; all objects are listed again."
_FAILURES = (ClusterUnavailable, ClusterRefused, ValueError)
log = structlog.get_logger(__name__)


class WatchSource(Protocol):
    """The two calls of `cluster.client.kube.Kube` that following needs."""

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
    """The server is asked to end a watch after `quiet_s`: an end that was said is a sign of life, of kinds without
    bookmarks too, and shortly before it comes a bookmark. `silence_s` without a line is a connection that died without
    saying so. What happened behind one that died is known within a minute of the server's return.
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
    HEARD = "heard"  # nothing happened, and the server said so
    TROUBLE = "trouble"  # `text` is for people
    AGAIN = "again"  # by a second look at a namespace, not by the watch
    COMPARED = "compared"  # that look, at the namespace in `text`, is complete


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
    """Notes of one kind, until `pause(seconds)`, which waits, says that it is time to stop."""
    wait = _Wait(pause, limits)
    while not wait.is_to_stop:
        try:
            # It returns when the whole list is to be compared again.
            yield from _list_then_watch(source, kind, wait, limits)
        except Gone:
            # Normal after a long interruption; a server that says it after every list must not be asked in a circle.
            # Until the list is complete nobody knows what happened meanwhile.
            yield WatchNote(kind, NoteType.TROUBLE, text=TOO_OLD)
            wait.after_failure()
        except _FAILURES as error:
            yield WatchNote(kind, NoteType.TROUBLE, text=_sentence(error))
            wait.after_failure()


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
                # A repeated or late event must not turn the clock back.
                version = later_version(version, note.resource_version)
                yield note
                if time.monotonic() >= compare_at:
                    return
        except _FAILURES as error:
            if time.monotonic() - opened_at >= limits.silence_s:
                # It was open all that time.
                wait.succeeded()
            yield from _until_it_answers(source, kind, wait, error)
        else:
            if reached:
                # The server said the end, so whatever had happened when the watch was opened has arrived. Without this
                # a quiet kind would be too old to go on from after a compaction, and listed whole every few minutes.
                version = later_version(version, reached)
                yield WatchNote(kind, NoteType.HEARD, version)
            if time.monotonic() - opened_at < limits.first_wait_s:
                # The server ends watches after minutes; one that ends them at once is not well.
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
    """How far the server is, told with a list of one."""
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
    """Asks for one object. Trouble is what does not answer, or breaks off again and again although it answers."""
    is_trouble = wait.has_failed
    while True:
        if is_trouble:
            yield WatchNote(kind, NoteType.TROUBLE, text=_sentence(error))
        if wait.after_failure():
            return
        try:
            source.list_page(kind.path, limit=1, field_selector=kind.field_selector)
        except _FAILURES as still:
            error, is_trouble = still, True
        else:
            # Without this a healed connection would look broken until its next event or bookmark.
            yield WatchNote(kind, NoteType.HEARD)
            return


def later_version(one: str, other: str) -> str:
    """The later of two resource versions, which are comparable numbers; text that is no number is taken as it comes."""
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
    """Longer with every failure in a row, up to a limit, never the same for two kinds."""

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

    def after_failure(self) -> bool:
        seconds = min(self._limits.first_wait_s * 2 ** min(self._failures, 10), self._limits.longest_wait_s)
        self._failures += 1
        self.is_to_stop = self._pause(seconds * random.uniform(0.5, 1.0))
        return self.is_to_stop
