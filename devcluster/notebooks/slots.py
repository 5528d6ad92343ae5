"""Limits how many notebooks run at once on this machine; the others wait in order of arrival."""

from __future__ import annotations

import threading


class Slots:
    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._lock = threading.Lock()
        self._line: list[str] = []

    def enter(self, uid: str) -> None:
        with self._lock:
            self._line.append(uid)

    def place(self, uid: str) -> int:
        """Returns 0 if it may run. Otherwise its position among those that wait, from 1."""
        with self._lock:
            return max(0, self._line.index(uid) + 1 - self.limit)

    def leave(self, uid: str) -> None:
        with self._lock:
            if uid in self._line:
                self._line.remove(uid)
