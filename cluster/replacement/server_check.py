"""Whether the API server that a client reaches is the cluster of the rows: by the uid of its namespace kube-system.

A kubeconfig may name another cluster by mistake, and a cluster may be lost and built again at the same address. There
every Job and every volume is missing, and no quota is set: whoever read that as the news of a day would record all runs
as lost, and whoever wrote there would change a cluster that is not the portal's.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import structlog

from cluster.replacement.actions import record_reached
from cluster.replacement.queries import known_cluster

log = structlog.get_logger(__name__)
# An answer is valid for so long, and only while no request fails: a server that is replaced is away for a moment.
FRESH_S = 2.0


class ServerCheck:
    """Thread-safe: two threads may ask at once. `records`: for the watcher, which writes to the row what it reaches.
    `reached`: the uid that the server named last.
    """

    def __init__(self, *, records: bool = False) -> None:
        self.records = records
        self.reached = ""
        # Another one after each failure: an answer from before it is not valid, also if it is stored only now.
        self._era = object()
        self._valid: tuple[object, object, float] = (self._era, None, 0.0)
        self._is_other = False

    def forget(self) -> None:
        self._era = object()

    def is_other(self, pool: object, ask: Callable[[], str]) -> bool:
        """Whether the server is of another cluster than the rows; False before a watcher has recorded theirs. `pool`:
        of the connection to the server; another one has to be asked. `ask` returns the uid of the server's namespace
        kube-system; what it raises is raised. One query, none while the last answer is valid.
        """
        era = self._era
        of_era, checked, until = self._valid
        if of_era is era and checked is pool and time.monotonic() < until:
            return False
        uid, known = ask(), known_cluster()
        self.reached = uid
        if self.records:
            record_reached(uid, known)
        is_other = bool(known.uid) and uid != known.uid
        if is_other != self._is_other:
            self._is_other = is_other
            log.warning("other_cluster" if is_other else "own_cluster", reached=uid, known=known.uid)
        if not is_other:
            self._valid = (era, pool, time.monotonic() + FRESH_S)
        return is_other
