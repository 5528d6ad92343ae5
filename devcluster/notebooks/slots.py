"""Limits how many notebooks run at the same time on this machine. The others wait in the order of their arrival."""

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
        """Returns 0 if the pod may run; otherwise its position among the waiting pods, from 1."""
        with self._lock:
            return max(0, self._line.index(uid) + 1 - self.limit)

    def leave(self, uid: str) -> None:
        with self._lock:
            if uid in self._line:
                self._line.remove(uid)
