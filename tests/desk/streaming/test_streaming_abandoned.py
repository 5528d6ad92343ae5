"""Five hundred clients disconnect without notice: afterwards the doors process holds no more resources than before."""

from __future__ import annotations

import itertools
import socket
import struct
from dataclasses import astuple, dataclass
from pathlib import Path

import pytest
from django.db import connection

from accounts.models import User
from catalog.models import GpuClass
from tenants.models import Namespace
from tests.support.processes.sockets import subscriptions
from tests.support.processes.streaming import Doors, session_of
from tests.support.rows import running
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(240)]

CLIENTS, AT_ONCE = 500, 50
# For 500 clients: memory that the garbage collector has not freed yet. An open stream takes 15 KiB.
MEMORY_KIB = 3 * 1024


@dataclass(frozen=True)
class Held:
    """Resources held by the process, and for it by PostgreSQL and Redis."""

    descriptors: int
    threads: int
    database_connections: int
    subscriptions: int
    memory_kib: int

    @classmethod
    def now(cls, pid: int) -> Held:
        told = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()")
            (connections,) = cursor.fetchone()
        descriptors = len(list(Path(f"/proc/{pid}/fd").iterdir()))
        return cls(descriptors, int(told["Threads"]), connections, subscriptions(pid), int(told["VmRSS"].split()[0]))


def crowd(doors: Doors, namespace: Namespace, sessions: list[str], clients: int) -> None:
    """Opens streams, a waiting call, a log and incomplete requests. They end by close or by reset, some during the
    answer and some before it.
    """
    asked = (
        f"/live/{namespace.name}",
        f"/live/{namespace.name}?workload=one",
        "/api/v1/workloads/one?team=team-a&wait=60&until=ready",
        "/live/logs/team-a/one",
    )
    requests = [f"GET {path} HTTP/1.1\r\nHost: portal\r\nCookie: session=%s\r\n\r\n" for path in asked]
    kinds = itertools.cycle(itertools.product([*requests, requests[0][:-2], ""], (False, True), (False, True)))
    # Undetected disconnects count as open: no session has as many as its limit.
    people = itertools.cycle(sessions)
    for _batch in range(clients // AT_ONCE):
        here = []
        for sends, is_reset, is_patient in itertools.islice(kinds, AT_ONCE):
            one = socket.create_connection(("127.0.0.1", doors.port), timeout=30)
            one.sendall(sends.replace("%s", next(people)).encode())
            here.append((one, is_reset, is_patient and sends == requests[0]))
        for one, is_reset, is_patient in here:
            if is_patient:
                assert one.recv(64).startswith(b"HTTP/1.1 200")
            if is_reset:
                one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            one.close()


def test_abandoned_connections_leave_nothing_behind(
    doors: Doors, namespace_a: Namespace, a100: GpuClass, alice: User, bob: User
) -> None:
    running.workload(namespace_a, a100, name="one", by=alice)
    running.known(namespace_a.cluster_id)
    sessions = [session_of(bob) for _tab in range(10)]
    # The first requests create threads, caches and compiled templates.
    crowd(doors, namespace_a, sessions, 2 * AT_ONCE)
    wait_until(lambda: Held.now(doors.pid).descriptors < AT_ONCE)
    before = Held.now(doors.pid)
    assert before.subscriptions == 1, "one, whoever watches"

    grown = []
    for _half in range(2):
        memory = Held.now(doors.pid).memory_kib
        crowd(doors, namespace_a, sessions, CLIENTS // 2)
        assert doors.get("/livez")[0] == 200
        wait_until(lambda: is_back(before, doors.pid), story=lambda: f"{before}\n{Held.now(doors.pid)}")
        grown.append(Held.now(doors.pid).memory_kib - memory)
    # A leak per client grows in both halves; memory that the process allocates once grows in only one.
    assert min(grown) <= MEMORY_KIB, grown


def is_back(before: Held, pid: int) -> bool:
    return all(now <= then + 2 for then, now in zip(astuple(before)[:-1], astuple(Held.now(pid))[:-1], strict=True))
