"""What 50,000 runs cost to which nothing happens: the processor time of worker, beat, watcher and database together.

Rows, worker, beat, watcher and API server are real; the database is the benchmark's own. The watcher is started anew
with the mirror of an earlier one, so that every object is listed again: that wakes no row. Then the rows are due as
after their last look. The peer is the time on the clock, so that the limit is a part of one core.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg

from devcluster.cli.bench import Bar, Context, Figure, benchmark
from devcluster.processes.paths import ROOT
from devcluster.services.portal import CONNECTIONS
from tests.perf.servers.database import own_database
from tests.perf.servers.redis import own_redis
from tests.perf.servers.watcher import until, watcher
from tests.perf.support.cluster.quiet_runs import RUNS, make_rows, runs_in_cluster, until_synced
from tests.perf.support.processes import stopped

# One to be dropped, and two minutes.
ROUNDS, ROUND_S = 9, 15.0
SETTLES_S = 20.0
PORTAL = ("beat", "worker", "watcher", "web", "doors")
PART_OF_A_CORE = 0.05
# One by its claim and one by its end.
UPDATES_OF_A_LOOK = 2
EVERY_MINUTE = RUNS / 60
LOOKS_MOST = 0.005
PEER_LOOKS = "a look at each run in every minute"


@benchmark("quiet", f"worker, watcher and database while nothing happens to {RUNS:,} runs")
def quiet(context: Context) -> Iterator[Figure]:
    services = context.services
    kubeconfigs, state = services["kubeconfigs"], Path(services["state_dir"])
    with (
        # They would use the same PostgreSQL and follow the same objects.
        stopped([context.demo["process_ids"][name] for name in PORTAL]),
        own_redis() as redis_url,
        own_database("quiet", database_url=services["database_url"], redis_url=redis_url),
        runs_in_cluster(context.admin, state) as job_uid,
    ):
        os.environ["REDIS_URL"] = redis_url
        cluster = make_rows(job_uid)
        with watcher(kubeconfigs["watcher"]):
            until_synced(cluster.pk)
        woken, costs = _measured(cluster.pk, kubeconfigs)
    # Figures of the whole time: a median over its parts would hide what is done once a minute.
    wall_s, counted = sum(one.wall_s for one in costs[1:]), costs[1:]
    parts = {name: sum(one.of[name] for one in counted) for name in costs[0].of}
    together = [(sum(parts.values()), wall_s)] * ROUNDS
    yield Figure("quiet_processor", "s", "the time on the clock", together, Bar("ratio", PART_OF_A_CORE))
    for name, cost in parts.items():
        yield Figure(f"quiet_processor_of_{name}", "s", "the time on the clock", [(cost, wall_s)] * ROUNDS)
    looks = sum(one.looks for one in counted) / wall_s
    yield Figure("quiet_looks", "looks/s", PEER_LOOKS, [(looks, EVERY_MINUTE)] * ROUNDS, Bar("ratio", LOOKS_MOST))
    yield Figure("quiet_woken_by_a_list", "rows", "all", [(woken, RUNS)] * ROUNDS, Bar("ours", 0))


@dataclass(frozen=True)
class _Cost:
    """`of`: seconds of processor time by process."""

    wall_s: float
    looks: float
    of: dict[str, float]


def _measured(cluster_id: int, kubeconfigs: dict[str, str]) -> tuple[int, list[_Cost]]:
    """The number of rows that the new watcher woke, and the cost of each round."""
    from django.db.models import Min
    from django.utils import timezone

    from cluster.models import MirrorKind
    from workloads.models import Workload

    before = timezone.now()
    # No row is due by its turn while the cluster is listed.
    Workload.objects.update(due_at=before + timedelta(days=1))
    with contextlib.ExitStack() as stack:
        pids = {"watcher": stack.enter_context(watcher(kubeconfigs["watcher"]))}
        listed = MirrorKind.objects.filter(cluster_id=cluster_id)
        until(lambda: (listed.aggregate(at=Min("listed_at"))["at"] or before) > before, "The list of a new watcher")
        woken = Workload.objects.filter(due_at__lte=timezone.now()).count()
        _rest()
        with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as database:
            # What is left of filling the tables.
            database.execute("VACUUM ANALYZE")
            database.execute("CHECKPOINT")
        pids |= stack.enter_context(_workers(kubeconfigs["worker"]))
        pids["database"] = _postmaster()
        threading.Event().wait(SETTLES_S)
        moments = [_moment(pids)]
        for _ in range(ROUNDS):
            threading.Event().wait(ROUND_S)
            moments.append(_moment(pids))
    costs = [
        _Cost(after[0] - before_[0], after[1] - before_[1], {name: after[2][name] - before_[2][name] for name in pids})
        for before_, after in itertools.pairwise(moments)
    ]
    return woken, costs


def _rest() -> None:
    """All rows are due as a look at each of them would leave it."""
    from django.db import connection
    from django.utils import timezone

    from portal.core.due import until_turn_s
    from workloads.models import Workload
    from workloads.runs.reconcile import RESYNC

    now = timezone.now()
    turns = {pk: until_turn_s(pk, RESYNC, at=now) for pk in Workload.objects.values_list("pk", flat=True)}
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE workloads_workload row SET due_at = now() + make_interval(secs => its.s)"
            " FROM unnest(%s::bigint[], %s::float8[]) AS its (id, s) WHERE row.id = its.id",
            [list(turns), list(turns.values())],
        )


@contextlib.contextmanager
def _workers(kubeconfig: str) -> Iterator[dict[str, int]]:
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as log:
        environment = {
            **os.environ,
            **CONNECTIONS["worker"],
            "PORTAL_KUBECONFIG": kubeconfig,
            "LOG_LEVEL": "WARNING",
            "BEAT_SCHEDULE_FILE": f"{folder}/beat",
        }
        celery = [sys.executable, "-m", "celery", "-A", "portal"]
        quiet = ["--without-gossip", "--without-mingle", "--without-heartbeat"]
        commands = {
            "worker": [*celery, "worker", "-P", "prefork", "-Q", "people,background", "--concurrency", "2", *quiet],
            "beat": [*celery, "beat"],
        }
        processes: dict[str, subprocess.Popen[Any]] = {
            name: subprocess.Popen(command, cwd=ROOT, env=environment, stdout=log, stderr=log)
            for name, command in commands.items()
        }
        try:
            yield {name: process.pid for name, process in processes.items()}
        finally:
            for process in processes.values():
                process.terminate()
            for process in processes.values():
                process.wait(30)


def _postmaster() -> int:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        return _fields(cursor.fetchone()[0])[1]


def _moment(pids: dict[str, int]) -> tuple[float, float, dict[str, float]]:
    """The time, the number of looks until now, and the processor time of each process with its children."""
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as database:
        found = database.execute(
            "SELECT n_tup_upd FROM pg_stat_user_tables WHERE relname = 'workloads_workload'"
        ).fetchone()
    assert found is not None
    return time.monotonic(), found[0] / UPDATES_OF_A_LOOK, {name: _processor_s(pid) for name, pid in pids.items()}


def _processor_s(pid: int) -> float:
    """Of the process, its living children, and those that have ended."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    ticks = sum(_fields(pid)[11:15])
    for child in children:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            ticks += sum(_fields(int(child))[11:15])
    return ticks / os.sysconf("SC_CLK_TCK")


def _fields(pid: int) -> list[int]:
    """Fields of /proc/PID/stat after the name: 1 is the parent, 11 to 14 are times."""
    text = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return [0, *(int(one) for one in text[1:])]
