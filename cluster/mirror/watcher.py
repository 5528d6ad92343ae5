"""The watcher process: one per cluster, with a thread for each kind and one writer.

Only the holder of the advisory lock writes. The lock belongs to the writer's database connection, so that a watcher
that lost it cannot write either. Any failure (lost connection, emptied tables) ends the whole run: its threads end by
themselves and a new run begins with lists.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

import redis
import structlog
from django.db import InterfaceError, InternalError, OperationalError, connection

from cluster.client.errors import UNAVAILABLE
from cluster.mirror.leases import LeaseReader, SilenceRecorder
from cluster.mirror.records.kinds import KINDS, MirroredKind, followed_kinds
from cluster.mirror.records.types import ObservedObject
from cluster.mirror.relist import Relister
from cluster.mirror.watch import NoteType, WatchLimits, WatchNote, WatchSource, follow_kind
from cluster.mirror.writer import EpochLost, MirrorWriter
from cluster.models import Cluster
from portal.core import due, hints
from portal.core.sql import WITHOUT_POOLER, has_own_session

log = structlog.get_logger(__name__)

# First key of the advisory lock; the second is the cluster's.
LOCK_SPACE = 0x6B756265
BEAT_S = 5.0
# Longer than a beat. A watcher that hangs loses its session, and with it the lock, to another one.
LOCK_LOST_AFTER = "20s"
BATCH = 1000
INBOX = 4000
# An event alone is written at once. After a batch the watcher gathers for as long as that took, at most for this time:
# a batch of two takes as long as one of twenty, and a launch or a new team causes dozens of events.
GATHER_AT_MOST_S = 0.05
LOCK_AGAIN_S = 1.0
# All other kinds wait for this one, because it shows which namespaces are ours.
FIRST = "Namespace"

Item = tuple[WatchNote, ObservedObject | None]


class SharedSession(Exception):
    """Two watchers behind a pooler would both get the lock: it belongs to a session, which they share."""


@dataclass(frozen=True)
class WatcherOptions:
    limits: WatchLimits = field(default_factory=WatchLimits)
    beat_s: float = BEAT_S
    capacity_owners: Callable[[], Iterable[str]] = tuple


class Watcher:
    """`run` returns after a call of `stop`, from a signal handler or another thread."""

    def __init__(self, cluster: Cluster, source: WatchSource, options: WatcherOptions | None = None) -> None:
        self._cluster = cluster
        self._source = source
        self._options = options or WatcherOptions()
        self._stop = threading.Event()
        self._pages = PageHints()

    def stop(self) -> None:
        self._stop.set()

    def run(self) -> None:
        self._pages.start()
        while not self._stop.is_set():
            try:
                if self._lock():
                    self._follow_all()
            except EpochLost as lost:
                log.warning("mirror_begins_again", cluster=self._cluster.name, because=str(lost))
            # InternalError: PostgreSQL ended the session, because this process hung in a transaction.
            except (OperationalError, InterfaceError, InternalError) as error:
                log.warning("database_lost", cluster=self._cluster.name, error=str(error).split("\n")[0])
                self._stop.wait(LOCK_AGAIN_S)
            finally:
                # Releases the lock, and closes a broken connection.
                connection.close()
        self._pages.stop()

    def _lock(self) -> bool:
        """Waits for the advisory lock and logs that once. Returns False if it was stopped meanwhile."""
        has_said = False
        if not has_own_session():
            raise SharedSession(f"The watcher's lock needs a session of its own. {WITHOUT_POOLER}")
        with connection.cursor() as cursor:
            cursor.execute(f"SET idle_session_timeout = '{LOCK_LOST_AFTER}'")
        while not self._stop.is_set():
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_try_advisory_lock(%s, %s)", [LOCK_SPACE, self._cluster.pk])
                if cursor.fetchone() == (True,):
                    log.info("watcher_follows", cluster=self._cluster.name)
                    return True
            if not has_said:
                log.warning(
                    "watcher_waits", cluster=self._cluster.name, because="another watcher is active for this cluster"
                )
                has_said = True
            self._stop.wait(LOCK_AGAIN_S)
        return False

    def _follow_all(self) -> None:
        locked = connection.connection
        mirror = MirrorWriter(self._cluster.pk, capacity_owners=self._options.capacity_owners)
        mirror.open()
        silence = SilenceRecorder(self._cluster.pk)
        names = followed_kinds(has_kueue=self._cluster.has_kueue)
        run = _Run(self._source, self._options.limits, names)
        kinds = [KINDS[name] for name in names]
        try:
            run.start(KINDS[FIRST])
            waiting = [kind for kind in kinds if kind.name != FIRST]
            beat_at = gathers_until = time.monotonic()
            while not self._stop.is_set():
                items = run.take(beat_at - time.monotonic(), not_before=gathers_until)
                if items:
                    began = time.monotonic()
                    changed = mirror.write(items)
                    written = time.monotonic()
                    gathers_until = written + min(written - began, GATHER_AT_MOST_S)
                    self._pages.send(changed)
                    run.look.after(changed & _had_news(items) | mirror.doubtful)
                    mirror.doubtful.clear()
                    if mirror.is_healed:
                        # Rows that wait for the API server would otherwise wait for up to five minutes more.
                        due.wake_failed(UNAVAILABLE)
                        mirror.is_healed = False
                if time.monotonic() >= beat_at:
                    mirror.beat()
                    self._pages.send(silence.write(run.leases.take()))
                    beat_at = time.monotonic() + self._options.beat_s
                mirror.tell()
                if connection.connection is not locked:
                    # Django opens a new connection after a broken transaction; the lock was lost with the old one.
                    raise OperationalError("The connection was lost while changes were published.")
                if waiting and any(note.what is NoteType.LISTED for note, _seen in items):
                    for kind in waiting:
                        run.start(kind)
                    waiting = []
        finally:
            run.end()


class _Run:
    """The threads of one run and the inbox that they fill. After `end` they add nothing more and end by themselves."""

    def __init__(self, source: WatchSource, limits: WatchLimits, kinds: Iterable[str]) -> None:
        self._source = source
        self._limits = limits
        self._inbox: queue.Queue[Item] = queue.Queue(INBOX)
        self._is_over = threading.Event()
        self.look = Relister(source, kinds, lambda note: self._put(_item(note)))
        threading.Thread(target=self.look.run, args=(self._is_over,), name="second look", daemon=True).start()
        self.leases = LeaseReader(source)
        threading.Thread(target=self.leases.run, args=(self._is_over,), name="leases", daemon=True).start()

    def start(self, kind: MirroredKind) -> None:
        threading.Thread(target=self._follow, args=(kind,), name=f"watch {kind.name}", daemon=True).start()

    def end(self) -> None:
        self._is_over.set()

    def take(self, timeout_s: float, *, not_before: float) -> list[Item]:
        """Returns the queued items: at least one, unless the time runs out. Waits for more until `not_before`, unless
        there is a full batch.
        """
        try:
            items = [self._inbox.get(timeout=max(timeout_s, 0.001))]
        except queue.Empty:
            return []
        if self._inbox.qsize() < BATCH:
            self._is_over.wait(max(0.0, not_before - time.monotonic()))
        while len(items) < BATCH:
            try:
                items.append(self._inbox.get_nowait())
            except queue.Empty:
                break
        return items

    def _follow(self, kind: MirroredKind) -> None:
        while not self._is_over.is_set():
            try:
                for note in follow_kind(self._source, kind, pause=self._is_over.wait, limits=self._limits):
                    if not self._put(_item(note)):
                        return
            except Exception:
                # The watcher never gives up: an unexpected error is logged with its traceback, then it starts again.
                log.exception("watch_failed", kind=kind.name)
                self._put(
                    (WatchNote(kind, NoteType.TROUBLE, text="The watcher failed; it lists the cluster again."), None)
                )
                self._is_over.wait(self._limits.longest_wait_s)

    def _put(self, item: Item | None) -> bool:
        while item is not None and not self._is_over.is_set():
            try:
                self._inbox.put(item, timeout=1)
                break
            except queue.Full:
                continue
        return not self._is_over.is_set()


def _item(note: WatchNote) -> Item | None:
    """Replaces the raw object by its record. One unreadable object must not stop its kind."""
    if note.raw is None:
        return note, None
    try:
        seen = note.kind.seen(note.raw)
    except (KeyError, ValueError, TypeError, AttributeError):
        name = (note.raw.get("metadata") or {}).get("name", "")
        log.exception("record_failed", kind=note.kind.name, name=name)
        return None
    return replace(note, raw=None), seen


def _had_news(items: Iterable[Item]) -> set[str]:
    """Returns namespaces with watch events; objects from a list come without a version."""
    is_news = (NoteType.SEEN, NoteType.REMOVED)
    return {seen.namespace for note, seen in items if seen and note.resource_version and note.what in is_news}


class PageHints:
    """Publishes page channels from its own thread: a Redis that does not answer must not block the mirror."""

    def __init__(self) -> None:
        self._waiting: set[str] = set()
        self._changed = threading.Condition()
        self._is_over = False

    def start(self) -> None:
        threading.Thread(target=self._run, name="page hints", daemon=True).start()

    def stop(self) -> None:
        with self._changed:
            self._is_over = True
            self._changed.notify()

    def send(self, channels: set[str]) -> None:
        if not channels:
            return
        with self._changed:
            self._waiting |= channels
            self._changed.notify()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._is_over)
                channels, self._waiting = self._waiting, set()
                if self._is_over and not channels:
                    return
            try:
                with hints.redis_connection().pipeline(transaction=False) as pipeline:
                    for channel in sorted(channels):
                        pipeline.publish(hints.channel_name(channel), b"1")
                    pipeline.execute()
            except redis.RedisError as error:
                log.warning("hint_lost", hint=f"{len(channels)} pages", error=type(error).__name__)
