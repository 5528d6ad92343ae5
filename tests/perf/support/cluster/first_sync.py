"""What a watcher holds of 50,000 pods, what it needs to list them for the first time, and its work in idle time."""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import psycopg

from devcluster.cli.bench import Bar, Context, Figure
from devcluster.faults.api_proxy import ApiProxy
from devcluster.faults.rules import WRITES
from tests.perf.servers.database import own_database
from tests.perf.servers.served import status_kib
from tests.perf.servers.watcher import until, watcher
from tests.perf.support.cluster.many_pods import many_pods

PODS = 50_000
ROUNDS = 6
# After the first list, when freed memory has been returned.
SETTLES_S = 3.0
KIB_EACH, PEAK = 2, 1.5
# One to be dropped, and a minute.
IDLE_ROUNDS, IDLE_ROUND_S = 7, 10.0
# Heartbeats; all other rows of the mirror are observed state.
OF_LIFE = ("cluster_mirrorepoch", "cluster_mirrorkind")
WRITTEN = """
    SELECT coalesce(sum(n_tup_ins + n_tup_upd + n_tup_del) FILTER (WHERE relname <> ALL(%(life)s)), 0),
           coalesce(sum(n_tup_ins + n_tup_upd + n_tup_del) FILTER (WHERE relname = ANY(%(life)s)), 0)
      FROM pg_stat_user_tables WHERE relname LIKE 'cluster_mirror%%'"""


def first_sync(context: Context) -> Iterator[Figure]:
    services, kubeconfig = context.services, context.services["kubeconfigs"]["watcher"]
    state = Path(services["state_dir"])
    with own_database("mirror", database_url=services["database_url"], redis_url=services["redis_url"]):
        from cluster.models import Cluster

        cluster = Cluster.objects.create(name="main", notebooks_domain="notebooks.localhost")
        without = [_synced(cluster.pk, kubeconfig, pods=0) for _ in range(ROUNDS)]
        with (
            _held(context.demo["process_ids"]["watcher"]),
            many_pods(context.admin, state, "bench-mirror-pods", number=PODS) as size,
        ):
            synced = [_synced(cluster.pk, kubeconfig, pods=PODS) for _ in range(ROUNDS)]
            idle = _idle(cluster.pk, kubeconfig)
    each = [(steady - alone) / PODS for (steady, _peak), (alone, _) in zip(synced, without, strict=True)]
    peaks = [(peak / 1024, steady / 1024) for steady, peak in synced]
    yield Figure("mirror_memory_a_pod", "KiB", "its JSON", [(one, size / 1024) for one in each], Bar("ours", KIB_EACH))
    yield Figure("mirror_first_sync_peak", "MiB", "afterwards", peaks, Bar("ratio", PEAK))
    # Figures of the whole minute: a median over its parts would hide a single write.
    rows, writes, lists = (sum(one[which] for one in idle[1:]) for which in (0, 2, 3))
    yield Figure("mirror_idle_rows", "rows", "signs of life", [(rows, one[1]) for one in idle], Bar("ours", 0))
    yield Figure("mirror_idle_writes", "calls", "one call", [(writes, 1) for _ in idle], Bar("ours", 0))
    yield Figure("mirror_idle_full_lists", "lists", "one list", [(lists, 1) for _ in idle], Bar("ours", 0))


@contextlib.contextmanager
def _held(pid: int) -> Iterator[None]:
    """Stops the portal's own watcher, which would follow the same pods on the same two cores; it lists what it missed
    afterwards.
    """
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def _synced(cluster_id: int, kubeconfig: str, *, pods: int) -> tuple[int, int]:
    """Resident KiB of a watcher that began with an empty mirror: when it has synced, and the peak."""
    _forget(cluster_id)
    with watcher(kubeconfig) as pid:
        _until_synced(cluster_id, pods)
        threading.Event().wait(SETTLES_S)
        return status_kib(pid, "VmRSS"), status_kib(pid, "VmHWM")


def _idle(cluster_id: int, kubeconfig: str) -> list[tuple[float, float, float, float]]:
    """For each part of more than a minute: mirror rows written, heartbeat rows written, writes to the API server, and
    full lists.
    """
    _forget(cluster_id)
    with (
        tempfile.TemporaryDirectory() as directory,
        ApiProxy(kubeconfig, Path(directory)) as proxy,
        watcher(str(proxy.kubeconfig)),
    ):
        _until_synced(cluster_id, PODS)
        threading.Event().wait(SETTLES_S)
        counts = [_counts(proxy)]
        for _ in range(IDLE_ROUNDS):
            threading.Event().wait(IDLE_ROUND_S)
            counts.append(_counts(proxy))
    return [
        (after[0] - before[0], after[1] - before[1], after[2] - before[2], after[3] - before[3])
        for before, after in itertools.pairwise(counts)
    ]


def _counts(proxy: ApiProxy) -> tuple[float, float, float, float]:
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as database:
        found = database.execute(WRITTEN, {"life": list(OF_LIFE)}).fetchone()
    assert found is not None
    calls = [done.call for done in proxy.calls()]
    writes, lists = sum(call.verb in WRITES for call in calls), sum(call.is_full_list for call in calls)
    return float(found[0]), float(found[1]), float(writes), float(lists)


def _forget(cluster_id: int) -> None:
    from django.db import connection

    from cluster.mirror import tables

    tables.forget_everything(cluster_id)
    with connection.cursor() as cursor:
        cursor.execute("TRUNCATE cluster_mirrorpod, cluster_mirrorepoch")


def _until_synced(cluster_id: int, pods: int) -> None:
    from cluster.models import MirrorPod
    from cluster.reads import queries as mirror

    until(lambda: mirror.as_of(cluster_id).is_current, "The first list")
    until(lambda: MirrorPod.objects.filter(cluster_id=cluster_id).count() >= pods, f"{pods:,} pods in the mirror")
