"""Lists a namespace again after an event in it, because a watch that lost an event never reports it.

The next complete list may be a day away. Some seconds after an event in a namespace, one page of each kind shown on its
pages is listed there. A difference from the mirror is written if two lists in a row find it: an event would have
arrived by then. Namespaces without events are not listed; one with more than a page of objects is left to the daily
comparison.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field

from cluster.client.api_kinds import api_path
from cluster.client.errors import ClusterRefused, ClusterUnavailable
from cluster.mirror.records.kinds import KINDS, MirroredKind
from cluster.mirror.records.types import ObservedObject
from cluster.mirror.watch import NoteType, WatchNote, WatchSource

RELISTED_KINDS = ("Job", "Pod", "Workload")
AFTER_S = 5.0
# Minimum time between relists of two namespaces, however many had events.
PACE_S = 0.2
IDLE_S = 1.0
PAGE = 250
LARGE_FOR_S = 600.0
GONE = -1
# Newer than any version: used for deleted objects.
NEVER_AGAIN = sys.maxsize


@dataclass
class RelistDiff:
    """Differences of one kind between relists and the mirror, by namespace and uid. Pure."""

    _listed: dict[str, dict[str, ObservedObject]] = field(default_factory=dict)
    _before: dict[str, dict[str, int]] = field(default_factory=dict)

    def see(self, seen: ObservedObject) -> None:
        self._listed.setdefault(seen.namespace, {})[seen.uid] = seen

    def forget(self, namespace: str) -> None:
        self._listed.pop(namespace, None)
        self._before.pop(namespace, None)

    def judge(
        self, namespace: str, at: int, rows: Collection[str], version_of: Callable[[str], int | None]
    ) -> tuple[list[ObservedObject], list[str], bool]:
        """Returns what to write: current objects, uids of deleted objects, and whether a difference is still
        unconfirmed.

        `at`: the version of the list; `rows`: uids that the mirror has there; `version_of`: the last version from the
        watch.
        """
        listed = self._listed.pop(namespace, {})
        found = {
            uid: seen.resource_version for uid, seen in listed.items() if (version_of(uid) or 0) < seen.resource_version
        }
        for uid in rows:
            heard = version_of(uid)
            if uid not in listed and heard is not None and heard <= at:
                found[uid] = GONE
        believed = {uid for uid, _version in found.items() & self._before.pop(namespace, {}).items()}
        if doubted := {uid: version for uid, version in found.items() if uid not in believed}:
            self._before[namespace] = doubted
        gone = [uid for uid in believed if found[uid] == GONE]
        return [listed[uid] for uid in believed if uid in listed], gone, bool(doubted)


class Relister:
    """Lists in its own thread and passes on what it finds. `after` may be called from any thread."""

    def __init__(self, source: WatchSource, kinds: Iterable[str], put: Callable[[WatchNote], bool]) -> None:
        self._source = source
        self._kinds = [KINDS[name] for name in kinds if name in RELISTED_KINDS]
        self._put = put
        self._lock = threading.Lock()
        self._due: dict[str, float] = {}
        self._large: dict[str, float] = {}

    def after(self, namespaces: Iterable[str]) -> None:
        """Schedules relists of namespaces that had events. A namespace that is already scheduled keeps its time."""
        at = time.monotonic() + AFTER_S
        with self._lock:
            for namespace in namespaces:
                self._due.setdefault(namespace, at)

    def run(self, is_over: threading.Event) -> None:
        while not is_over.wait(self._pause()):
            namespace = self._next()
            if namespace and not all(self._look(kind, namespace) for kind in self._kinds):
                self._large[namespace] = time.monotonic() + LARGE_FOR_S

    def _pause(self) -> float:
        with self._lock:
            return PACE_S if self._due else IDLE_S

    def _next(self) -> str:
        now = time.monotonic()
        with self._lock:
            namespace = min(self._due, key=lambda one: self._due[one], default="")
            if not namespace or self._due[namespace] > now:
                return ""
            del self._due[namespace]
        if self._large.get(namespace, now) > now:
            return ""
        self._large.pop(namespace, None)
        return namespace

    def _look(self, kind: MirroredKind, namespace: str) -> bool:
        """Returns False if there is more than one page."""
        path = api_path(kind.name, namespace)
        try:
            page = self._source.list_page(path, limit=PAGE, field_selector=kind.field_selector)
        except (ClusterUnavailable, ClusterRefused, ValueError):
            # The watch reports the failure.
            return True
        metadata = page.get("metadata") or {}
        if metadata.get("continue"):
            return False
        for raw in page.get("items") or []:
            self._put(WatchNote(kind, NoteType.AGAIN, raw=raw))
        self._put(WatchNote(kind, NoteType.COMPARED, str(metadata.get("resourceVersion", "")), text=namespace))
        return True
