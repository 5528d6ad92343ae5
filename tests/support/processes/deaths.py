"""Ends a worker at each of its writes, to the database and to the cluster, enumerated as they come."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from django.db import connection

WRITE = re.compile(r"\s*(?:WITH\b.*?\b)?(INSERT INTO|UPDATE|DELETE FROM)\s+\"?(\w+)", re.DOTALL)
CLUSTER_WRITES = ("merge", "apply", "create", "delete")


class WorkerDied(BaseException):
    """Not an Exception: nothing may handle the end of a process."""


@dataclass
class Deaths:
    """Ends the worker once before and once after each write that it has not died at: a statement in one step of the
    node, or a request in that step. After a statement: before its transaction is committed.
    """

    kube: Any
    step: Callable[[], str]
    sites: Counter[tuple[str, str, bool]] = field(default_factory=Counter)
    _is_working: bool = False

    @contextmanager
    def at_work(self) -> Iterator[None]:
        self._is_working = True
        try:
            with connection.execute_wrapper(self._execute):
                yield
        finally:
            self._is_working = False

    def _execute(self, execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
        found = WRITE.match(str(sql))
        if not found or not self._is_working:
            return execute(sql, params, many, context)
        site = f"{found[1]} {found[2]} {hash(str(sql))}"
        self._die(site, is_after=False)
        answer = execute(sql, params, many, context)
        self._die(site, is_after=True)
        return answer

    def __getattr__(self, name: str) -> Any:
        call = getattr(self.kube, name)
        if name not in CLUSTER_WRITES:
            return call

        def written(kind: Any, **what: Any) -> Any:
            wanted = (what.get("body") or {}).get("spec") or {}
            site = f"{name} {kind if isinstance(kind, str) else kind['kind']} {wanted.get('active', '')}"
            self._die(site, is_after=False)
            answer = call(kind, **what)
            self._die(site, is_after=True)
            return answer

        return written

    def _die(self, site: str, *, is_after: bool) -> None:
        self._is_working, was = False, self._is_working
        step = self.step()
        self._is_working = was
        if not was or self.sites[step, site, is_after]:
            return
        self.sites[step, site, is_after] += 1
        raise WorkerDied
