"""When an independent watch saw objects for the first time as they are wanted."""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import Any

from devcluster.client.kube import Watch


class FirstSights:
    """`name_of`: takes the type of an event and its object; returns the name of one that is as wanted, or ""."""

    def __init__(self, watch: Watch, name_of: Callable[[str, dict[str, Any]], str]) -> None:
        self._watch, self._name_of = watch, name_of
        self._seen: dict[str, float] = {}
        self._changed = threading.Condition()
        threading.Thread(target=self._note, daemon=True).start()

    def await_all(self, names: Collection[str], *, within_s: float) -> dict[str, float]:
        """Returns the moments of `perf_counter`, and forgets them."""
        wanted = set(names)
        with self._changed:
            if not self._changed.wait_for(lambda: wanted <= self._seen.keys(), within_s):
                missing = sorted(wanted - self._seen.keys())
                raise TimeoutError(f"{len(missing)} of {len(wanted)} were not seen in {within_s:.0f} s: {missing[:5]}")
            return {name: self._seen.pop(name) for name in wanted}

    def stop(self) -> None:
        self._watch.stop()

    def _note(self) -> None:
        with suppress(OSError, http.client.HTTPException):  # stopped
            for kind, one in self._watch:
                if name := self._name_of(kind, one):
                    with self._changed:
                        self._seen.setdefault(name, time.perf_counter())
                        self._changed.notify_all()
