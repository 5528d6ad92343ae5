"""How many requests of each kind run and wait in this process. Those beyond are refused at once, in words.

Sign-in, home, "Stop" and decisions have slots of their own, which lists never take. A refusal takes less than a
millisecond of a thread, so threads are free for what goes first. Pure: it knows neither Django nor the clock.
"""

from __future__ import annotations

import itertools
import random
import threading
from collections import Counter, deque
from dataclasses import dataclass, field

from portal.core.errors import Refusal
from portal.web.admission.kinds import Kind


@dataclass(frozen=True)
class Bounds:
    """`running`: of this kind, within what its group may have. `of_caller`: running and waiting of one session or
    token.
    """

    running: int
    waiting: int
    wait_s: float
    of_caller: int | None


# A person is answered or refused within 10 s, and as many pages and lists may wait as a process answers meanwhile: 100
# gather within seconds while another process starts, as in an upgrade. What people have filled in, or a pipeline wants
# done, waits longest: on a Monday morning hundreds launch within seconds. Changes alone, and lists alone, leave a slot
# of their group to pages. A page asks for up to seven parts at once, a browser that starts again for all its tabs.
BOUNDS = {
    Kind.FIRST: Bounds(running=6, waiting=60, wait_s=10, of_caller=8),
    Kind.SIGN_IN: Bounds(running=2, waiting=8, wait_s=10, of_caller=4),
    Kind.CHANGE: Bounds(running=3, waiting=250, wait_s=20, of_caller=16),
    Kind.USUAL: Bounds(running=6, waiting=150, wait_s=10, of_caller=16),
    Kind.COSTLY: Bounds(running=3, waiting=150, wait_s=10, of_caller=16),
}
# As many as DATABASE_POOL_SIZE: a running request has a connection. Requests wait for PostgreSQL half of their time, so
# fewer would leave the processor to others. Each group has half, and two more while nobody of the other wants them: the
# other still finds two free at once.
RUNNING = 8
OF_GROUP = 4
LENT = 2
GROUPS = ((Kind.FIRST, Kind.SIGN_IN), (Kind.CHANGE, Kind.USUAL, Kind.COSTLY))
GROUP_OF = {kind: group for group in GROUPS for kind in group}
# Who waits is served in this order. Pages and lists by age: while a process starts and takes a processor, all wait a
# little longer; lists behind all pages would be refused.
RANK = {Kind.FIRST: 0, Kind.SIGN_IN: 1, Kind.CHANGE: 2, Kind.USUAL: 3, Kind.COSTLY: 3}
# All of these may be in a thread at once, and some threads are left for refusals, probes and files.
THREADS = RUNNING + sum(bounds.waiting for bounds in BOUNDS.values()) + 4


@dataclass(eq=False)
class _Waiting:
    caller: str
    number: int
    may_run: threading.Event = field(default_factory=threading.Event)


class Gate:
    """One for each process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: Counter[Kind] = Counter()
        self._numbers = itertools.count()
        self._waiting: dict[Kind, deque[_Waiting]] = {kind: deque() for kind in Kind}
        self._running_of: Counter[tuple[Kind, str]] = Counter()
        self._of_caller: Counter[tuple[Kind, str]] = Counter()

    def enter(self, kind: Kind, caller: str) -> Refusal | None:
        """Returns None when the request may run; then `leave` has to follow. Waits as long as its bounds allow.

        `caller`: a session or token, "" if there is none.
        """
        bounds = BOUNDS[kind]
        with self._lock:
            own = self._of_caller[kind, caller] if caller else 0
            if bounds.of_caller is not None and own >= bounds.of_caller:
                return of_caller_refusal(kind, own)
            if not self._waiting[kind] and self._has_room(kind):
                self._of_caller[kind, caller] += 1
                self._run(kind, caller)
                return None
            if len(self._waiting[kind]) >= bounds.waiting:
                return full_refusal(kind)
            waiting = _Waiting(caller, next(self._numbers))
            self._waiting[kind].append(waiting)
            self._of_caller[kind, caller] += 1
        if waiting.may_run.wait(bounds.wait_s):
            return None
        with self._lock:
            if waiting.may_run.is_set():  # at the last moment
                return None
            self._waiting[kind].remove(waiting)
            self._forget(kind, caller)
            return full_refusal(kind)

    def leave(self, kind: Kind, caller: str) -> None:
        with self._lock:
            self._running[kind] -= 1
            _take_one(self._running_of, (kind, caller))
            self._forget(kind, caller)
            while found := [one for one in Kind if self._waiting[one] and self._has_room(one)]:
                next_kind = min(found, key=lambda one: (RANK[one], self._waiting[one][0].number))
                waiting = self._next(next_kind)
                self._waiting[next_kind].remove(waiting)
                self._run(next_kind, waiting.caller)
                waiting.may_run.set()

    def _next(self, kind: Kind) -> _Waiting:
        """Of those whose caller has the least in progress, the one that has waited longest: the first list of one
        person comes before the second of another.
        """
        return min(self._waiting[kind], key=lambda one: self._running_of[kind, one.caller])

    def _run(self, kind: Kind, caller: str) -> None:
        self._running[kind] += 1
        self._running_of[kind, caller] += 1

    def _has_room(self, kind: Kind) -> bool:
        own = GROUP_OF[kind]
        most = OF_GROUP if any(self._is_wanted(one) for one in GROUP_OF if one not in own) else OF_GROUP + LENT
        return (
            sum(self._running.values()) < RUNNING
            and sum(self._running[one] for one in own) < most
            and self._running[kind] < BOUNDS[kind].running
        )

    def _is_wanted(self, kind: Kind) -> bool:
        """Somebody waits who would run if there were a free slot."""
        return bool(self._waiting[kind]) and self._running[kind] < BOUNDS[kind].running

    def _forget(self, kind: Kind, caller: str) -> None:
        _take_one(self._of_caller, (kind, caller))


def _take_one(counts: Counter[tuple[Kind, str]], key: tuple[Kind, str]) -> None:
    counts[key] -= 1
    if not counts[key]:
        del counts[key]


WHAT = {Kind.COSTLY: "lists, reports and charts", Kind.CHANGE: "changes"}


def of_caller_refusal(kind: Kind, own: int) -> Refusal:
    what = WHAT.get(kind, "requests")
    text = f"You already have {own} {what} in progress, which is the limit. Nothing was done. Try again in 2 s."
    return Refusal("too_many_requests", text, status=429, retry_after_s=2)


def full_refusal(kind: Kind) -> Refusal:
    """The seconds are random, so that those who were refused together do not return together."""
    bounds, again_s = BOUNDS[kind], random.randint(2, 6)
    text = (
        f"The portal is busy: {bounds.running} {WHAT.get(kind, 'requests')} are in progress and {bounds.waiting} wait. "
        f"Nothing was done. Try again in {again_s} s."
    )
    return Refusal("overloaded", text, status=503, retry_after_s=again_s)
