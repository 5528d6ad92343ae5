"""How far the mirror lags: from a change's event on an independent watch to the committed row. Also what 50,000 pods
cost: the memory of a watcher that holds them and that lists them for the first time, and its writes in idle time.
"""

from __future__ import annotations

import queue
import statistics
import threading
import time
from collections.abc import Iterator

import psycopg

from devcluster.cli.bench import Bar, Context, Figure, benchmark
from devcluster.client.kube import Api, Watch
from tests.perf.support.cluster.first_sync import PODS, first_sync

NAMESPACE = "bench-mirror"
ROUNDS = 6
CHANGES = 20
LABELS = {"app.kubernetes.io/managed-by": "gpu-portal"}
SEEN = "SELECT resource_version FROM cluster_mirrorobject WHERE kind = 'LimitRange' AND namespace = %s"
PEER = """
    INSERT INTO bench_mirror VALUES (1, %s) ON CONFLICT (id) DO UPDATE SET text = excluded.text"""


@benchmark(
    "mirror", f"from an event of the cluster to the committed row; memory and rest of a watcher of {PODS:,} pods"
)
def mirror(context: Context) -> Iterator[Figure]:
    admin = context.admin
    admin.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": LABELS}})
    admin.create(_limit_range(0))
    watch = admin.watch("v1/limitranges", namespace=NAMESPACE, timeout_s=600)
    events: queue.Queue[tuple[int, float]] = queue.Queue()
    threading.Thread(target=_note, args=(watch, events), daemon=True).start()
    try:
        with psycopg.connect(context.demo["database_url"], autocommit=True) as database:
            database.execute("CREATE UNLOGGED TABLE bench_mirror (id int PRIMARY KEY, text text)")
            rounds = [_round(admin, database, events, number) for number in range(ROUNDS)]
            database.execute("DROP TABLE bench_mirror")
    finally:
        watch.stop()
        admin.delete("v1/namespaces", NAMESPACE)
    medians = [(statistics.median(ours), statistics.median(peer)) for ours, peer in rounds]
    worst = [(max(ours), max(peer)) for ours, peer in rounds]
    yield Figure("mirror_p50", "ms", "one committed row", medians, Bar("ours", 10))
    yield Figure("mirror_max", "ms", "one committed row", worst)
    yield from first_sync(context)


def _round(
    admin: Api, database: psycopg.Connection, events: queue.Queue[tuple[int, float]], number: int
) -> tuple[list[float], list[float]]:
    ours, peer = [], []
    for change in range(CHANGES):
        changed = admin.patch(
            "v1/limitranges",
            "bench",
            {"spec": _limit_range(1 + number * CHANGES + change)["spec"]},
            namespace=NAMESPACE,
        )
        version = int(changed["metadata"]["resourceVersion"])
        written_at = _await_row(database, version)
        ours.append((written_at - _event(events, version)) * 1000)
        started = time.perf_counter()
        database.execute(PEER, [str(change)])
        peer.append((time.perf_counter() - started) * 1000)
    return ours, peer


def _await_row(database: psycopg.Connection, version: int, *, within_s: float = 10) -> float:
    deadline = time.perf_counter() + within_s
    while time.perf_counter() < deadline:
        found = database.execute(SEEN, [NAMESPACE]).fetchone()
        if found and found[0] >= version:
            return time.perf_counter()
    raise TimeoutError(f"the mirror did not show version {version} within {within_s:.0f} s")


def _event(events: queue.Queue[tuple[int, float]], version: int) -> float:
    while True:
        seen, at = events.get(timeout=10)
        if seen == version:
            return at


def _note(watch: Watch, events: queue.Queue[tuple[int, float]]) -> None:
    for _event_type, obj in watch:
        events.put((int(obj["metadata"]["resourceVersion"]), time.perf_counter()))


def _limit_range(number: int) -> dict[str, object]:
    spec = {"limits": [{"type": "Container", "default": {"cpu": f"{100 + number}m"}}]}
    metadata = {"name": "bench", "namespace": NAMESPACE, "labels": LABELS}
    return {"apiVersion": "v1", "kind": "LimitRange", "metadata": metadata, "spec": spec}
