"""A log of 1 GiB that 50 people of a team follow, one of whom reads nothing of it.

Doors may hold only what is on its way: a few parts for each follower, however long the log is and however slow
the reader. Meanwhile it answers other requests, whose peer is the same process before. The peer of the transfer is the
same log without doors.
"""

from __future__ import annotations

import contextlib
import json
import selectors
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from devcluster.cli.bench import Bar, Context, Figure, benchmark
from devcluster.processes.paths import ROOT
from devcluster.processes.ports import free_port
from tests.perf.servers.database import own_database
from tests.perf.servers.served import DOORS, Served, served
from tests.perf.support.pace import Asked, Pace, p99
from tests.perf.support.viewers import Asked as Followed

PEOPLE = 50
LOG_MIB = 1024
MIB = 1024 * 1024
ROUNDS = 6
ROUND_S = 10.0
A_SECOND = 20
# 16 parts of 64 KiB for each follower, and as much again for the buffers of the connections.
MEMORY_MIB = 2 * PEOPLE * 16 * 64 / 1024
P99_MS = 250.0


@benchmark("logs", f"a log of {LOG_MIB} MiB, followed by {PEOPLE} people, one of whom does not read", cluster=False)
def logs(context: Context) -> Iterator[Figure]:
    services = context.services
    memory, rate, answers = [], [], []
    with (
        own_database("logs", database_url=services["database_url"], redis_url=services["redis_url"]),
        long_log() as (port, kubeconfig),
    ):
        asked = followers()
        for _ in range(ROUNDS):
            with served(DOORS, PORTAL_KUBECONFIG=str(kubeconfig)) as doors:
                follow(doors.port, asked[:1], for_s=1.0)
                alone, before = answered_ms(doors.port), doors.resident_kib
                most = Highest(doors)
                read, meanwhile = follow(doors.port, asked, for_s=ROUND_S)
                memory.append(((most.stop() - before) / 1024, before / 1024))
                answers.append((meanwhile, alone))
            direct, _none = follow(port, [Followed("/log")] * (PEOPLE - 1), for_s=ROUND_S, is_paced=False)
            rate.append((read / ROUND_S / MIB, direct / ROUND_S / MIB))
    yield Figure("logs_memory_of_doors", "MiB more", "before", memory, Bar("ours", MEMORY_MIB))
    yield Figure("logs_other_requests_p99", "ms", "without followers", answers, Bar("ours", P99_MS))
    yield Figure("logs_transfer", "MiB/s", "without doors", rate)


def followers() -> list[Followed]:
    """A job that runs, and a request of each member of its team."""
    from django.db import connections

    from cluster.models import Cluster, MirrorEpoch, MirrorKind
    from tests.perf.support.teams import audience
    from tests.support.rows import make, running
    from tests.support.rows.mirrored import hardware_seen

    cluster = Cluster.objects.create(name="main")
    hardware_seen(cluster)
    gpu_class = make.gpu_class(cluster)
    team = make.tenant(cluster, slug="team-0")
    person = make.user("Alice")
    make.member(team, person)
    make.grant(team, gpu_class, units=1)
    namespace = team.namespaces.get()
    running.make_ready(running.workload(namespace, gpu_class, name="train", by=person, kind="job"))
    MirrorEpoch.objects.update(beat_at="2100-01-01T00:00:00Z")
    MirrorKind.objects.update(heard_at="2100-01-01T00:00:00Z")
    (watched,) = audience([namespace.name], each=PEOPLE)
    connections.close_all()
    return [Followed("/live/logs/team-0/train", one.cookie) for one in watched.asked]


@contextlib.contextmanager
def long_log() -> Iterator[tuple[int, Path]]:
    """The port of the server that has the log, and a kubeconfig for it."""
    port = free_port()
    process = subprocess.Popen([sys.executable, "-m", "tests.perf.servers.long_log", str(port), str(LOG_MIB)], cwd=ROOT)
    with tempfile.TemporaryDirectory() as folder:
        kubeconfig = Path(folder, "kubeconfig")
        kubeconfig.write_text(
            json.dumps(
                {
                    "current-context": "log",
                    "contexts": [{"name": "log", "context": {"cluster": "log", "user": "doors"}}],
                    "clusters": [{"name": "log", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
                    "users": [{"name": "doors", "user": {"token": "doors"}}],
                }
            )
        )
        try:
            yield port, kubeconfig
        finally:
            process.terminate()
            process.wait(15)


def follow(port: int, asked: Sequence[Followed], *, for_s: float, is_paced: bool = True) -> tuple[int, float]:
    """Bytes that all followers but the last got, and the 99th percentile of other requests meanwhile. Of several
    followers, the last one reads no more than its headers.
    """
    took: list[float] = []
    others = threading.Thread(target=lambda: took.append(answered_ms(port, for_s)))
    with contextlib.ExitStack() as stack, selectors.DefaultSelector() as selector:
        opened = [stack.enter_context(_opened(port, one)) for one in asked]
        for one in opened[:-1] if is_paced and len(opened) > 1 else opened:
            one.setblocking(False)
            selector.register(one, selectors.EVENT_READ)
        if is_paced:
            others.start()
        read, buffer, ends = 0, bytearray(MIB), time.monotonic() + for_s
        while (left := ends - time.monotonic()) > 0:
            for key, _events in selector.select(left):
                got = key.fileobj.recv_into(buffer)  # type: ignore[union-attr]
                read += got
                if not got:
                    selector.unregister(key.fileobj)
        if is_paced:
            others.join()
    return read, took[0] if took else 0.0


def _opened(port: int, asked: Followed) -> socket.socket:
    """Raises AssertionError if it is not answered with 200."""
    found = socket.create_connection(("127.0.0.1", port), timeout=30)
    found.sendall(asked.request())
    head = found.recv(12)
    assert head.endswith(b" 200"), head
    return found


def answered_ms(port: int, for_s: float = 5.0) -> float:
    return p99(Pace(port, 4).run(lambda _index: Asked("/livez"), A_SECOND, int(A_SECOND * for_s)))


class Highest:
    """The most memory that a process had, in KiB, looked at ten times a second."""

    def __init__(self, of: Served) -> None:
        self._of, self._over, self._found = of, threading.Event(), 0
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def _look(self) -> None:
        while not self._over.wait(0.1):
            self._found = max(self._found, self._of.resident_kib)

    def stop(self) -> int:
        self._over.set()
        self._thread.join()
        return self._found
