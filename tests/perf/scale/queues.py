"""How long Kueue takes to admit work when 10,000 teams have a ClusterQueue and a LocalQueue each, and what it needs.

The queues are real objects with the portal's own fields: one of each is created through the API server, and its stored
value is written to etcd for all. Requests for one unit arrive ten a second, each in another queue; a watch sees when
Kueue has admitted them. The peer is the same Kueue with ten queues. All are in one cohort, or in 100: Kueue copies
every queue in each of its cycles, and looks through the cohort of a queue that borrows.
"""

from __future__ import annotations

import contextlib
import statistics
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from devcluster.cli.bench import Bar, Context, Figure, benchmark
from devcluster.client.kube import Api
from tests.perf.support.cluster.many_pods import Etcd
from tests.perf.support.first_sights import FirstSights
from tests.perf.support.processes import cpu_s, resident_mib, stopped
from tests.support.waiting import wait_until

QUEUES, FEW, COHORTS = 10_000, 10, 100
ROUNDS, A_ROUND, A_SECOND = 7, 50, 10.0
AT_ONCE = 100
NAME = "bench-queues"
RESOURCE = "example.com/gpu"
API = "kueue.x-k8s.io/v1beta2"
WITHIN_S = 300.0
# Kueue is idle when a second takes less of a core.
IDLE_S = 0.1
# A person who clicks "Launch" is told within this time that it starts.
ADMITTED_P99_S = 2.0
PORTAL = ("beat", "worker", "watcher", "web", "doors")
PREFIXES = ("/registry/kueue.x-k8s.io/clusterqueues/", f"/registry/kueue.x-k8s.io/localqueues/{NAME}/")
Manifest = dict[str, Any]


@benchmark("queues", f"Kueue admits work while {QUEUES:,} teams have a queue, in one cohort and in {COHORTS}")
def queues(context: Context) -> Iterator[Figure]:
    ids = context.demo["process_ids"]
    with stopped([ids[name] for name in PORTAL]), _ground(context.admin):
        ground = _Ground(context.admin, Path(context.services["state_dir"]), ids["kueue"])
        try:
            few = ground.measured(FEW, cohorts=1)
            for cohorts in (COHORTS, 1):
                many = ground.measured(QUEUES, cohorts=cohorts)
                yield from _figures(f"queues_in_{cohorts}_cohorts", many, few)
        finally:
            ground.close()


@dataclass(frozen=True)
class _Measured:
    """`rounds`: seconds from the request to the admission, of each round. `cpu_s`: of Kueue, for each admission."""

    rounds: list[list[float]]
    cpu_s: list[float]
    resident_mib: float
    until_idle_s: float


def _figures(name: str, many: _Measured, few: _Measured) -> Iterator[Figure]:
    peer = f"the same with {FEW} queues"
    pairs = list(zip(many.rounds, few.rounds, strict=True))
    p99 = [(_p99(ours), _p99(other)) for ours, other in pairs]
    yield Figure(f"{name}_admitted_p99", "s", peer, p99, Bar("ours", ADMITTED_P99_S))
    p50 = [(statistics.median(ours), statistics.median(other)) for ours, other in pairs]
    yield Figure(f"{name}_admitted_p50", "s", peer, p50)
    cpu = list(zip(many.cpu_s, few.cpu_s, strict=True))
    yield Figure(f"{name}_processor_time", "s of Kueue for an admission", peer, cpu)
    memory = [(many.resident_mib, few.resident_mib)] * ROUNDS
    yield Figure(f"{name}_memory_of_kueue", "MiB", peer, memory)
    yield Figure(f"{name}_until_idle", "s after their creation", peer, [(many.until_idle_s, few.until_idle_s)] * ROUNDS)


@contextlib.contextmanager
def _ground(admin: Api) -> Iterator[None]:
    """The namespace has no label of the portal, whose fence admits only what the portal writes."""
    flavor = {"apiVersion": API, "kind": "ResourceFlavor", "metadata": {"name": NAME}, "spec": {}}
    admin.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAME}})
    admin.create(flavor)
    try:
        yield
    finally:
        admin.delete(f"{API}/resourceflavors", NAME)
        admin.delete("v1/namespaces", NAME)


class _Ground:
    def __init__(self, admin: Api, state: Path, kueue: int) -> None:
        self.admin, self.kueue = admin, kueue
        self.etcd = Etcd(state)
        self.admissions = FirstSights(admin.watch(f"{API}/workloads", namespace=NAME, timeout_s=3600), _admitted)

    def measured(self, queues: int, *, cohorts: int) -> _Measured:
        with self._queues(queues, cohorts):
            began = time.perf_counter()
            self._round("first", [queues - 1])
            self._until_idle()
            until_idle = time.perf_counter() - began
            rounds, cpu = [], []
            for number in range(ROUNDS):
                spent = cpu_s([self.kueue])
                chosen = [(number * A_ROUND + index) * 7919 % queues for index in range(A_ROUND)]
                rounds.append(self._round(f"r{number}", chosen))
                cpu.append((cpu_s([self.kueue]) - spent) / A_ROUND)
            return _Measured(rounds, cpu, resident_mib(self.kueue), until_idle)

    def _round(self, prefix: str, chosen: Sequence[int]) -> list[float]:
        """One request for each of the chosen queues; they are removed at the end."""
        asked: dict[str, float] = {}
        pause = threading.Event()
        began = time.perf_counter()
        for index, queue in enumerate(chosen):
            pause.wait(max(0.0, began + index / A_SECOND - time.perf_counter()))
            name = f"{prefix}-{index:03}"
            asked[name] = time.perf_counter()
            self.admin.create(_workload(name, _name(queue)))
        seen = self.admissions.await_all(asked, within_s=WITHIN_S)
        self.admin.request("DELETE", f"/apis/{API}/namespaces/{NAME}/workloads")
        wait_until(lambda: not self._left(), within_s=WITHIN_S, every_s=0.1, what="no request is left")
        return [seen[name] - at for name, at in asked.items()]

    def _left(self) -> int:
        return len(self.admin.list(f"{API}/workloads", namespace=NAME))

    @contextlib.contextmanager
    def _queues(self, number: int, cohorts: int) -> Iterator[None]:
        first = _name(0)
        self.admin.create(_cluster_queue(first, _cohort(0)))
        self.admin.create(_local_queue(first))
        wait_until(lambda: self._is_active(first), within_s=WITHIN_S, every_s=0.1, what="the first queue is active")
        stored = {prefix: self.etcd.read(prefix + first) for prefix in PREFIXES}
        try:
            for prefix, value in stored.items():
                for begin in range(1, number, AT_ONCE):
                    some = range(begin, min(begin + AT_ONCE, number))
                    self.etcd.write({prefix + _name(one): _copy(value, one, cohorts) for one in some})
            yield
        finally:
            for prefix in stored:
                self.etcd.delete(prefix + _name(0)[:-5])
            self._until_idle()

    def _is_active(self, name: str) -> bool:
        conditions = self.admin.get(f"{API}/localqueues", name, namespace=NAME).get("status", {}).get("conditions", [])
        return any(one["type"] == "Active" and one["status"] == "True" for one in conditions)

    def _until_idle(self) -> None:
        def used() -> float:
            before = cpu_s([self.kueue])
            threading.Event().wait(1.0)
            return cpu_s([self.kueue]) - before

        wait_until(lambda: used() < IDLE_S, within_s=WITHIN_S, every_s=0.0, what="Kueue is idle")

    def close(self) -> None:
        self.admissions.stop()


def _admitted(_kind: str, one: Manifest) -> str:
    conditions = one.get("status", {}).get("conditions", [])
    is_admitted = any(found["type"] == "Admitted" and found["status"] == "True" for found in conditions)
    return str(one["metadata"]["name"]) if is_admitted else ""


# ---- objects: names, cohorts and uids of one length are replaced in the stored bytes ---------------------------------


def _name(number: int) -> str:
    return f"{NAME}-{number:05}"


def _cohort(number: int) -> str:
    return f"{NAME}-cohort-{number:03}"


def _copy(stored: bytes, number: int, cohorts: int) -> bytes:
    """The uid of the first, with the number as its end: each object has its own."""
    uid = stored[stored.index(b'"uid":"') + 7 :][:36]
    other = uid[:-12] + f"{number:012}".encode()
    named = stored.replace(_name(0).encode(), _name(number).encode()).replace(uid, other)
    return named.replace(_cohort(0).encode(), _cohort(number % cohorts).encode())


def _cluster_queue(name: str, cohort: str) -> Manifest:
    flavor = {"name": NAME, "resources": [{"name": RESOURCE, "nominalQuota": 2}]}
    spec = {
        "cohortName": cohort,
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": NAME}},
        "queueingStrategy": "BestEffortFIFO",
        "resourceGroups": [{"coveredResources": [RESOURCE], "flavors": [flavor]}],
        "preemption": {"reclaimWithinCohort": "Any", "withinClusterQueue": "LowerPriority"},
    }
    return {"apiVersion": API, "kind": "ClusterQueue", "metadata": {"name": name}, "spec": spec}


def _local_queue(name: str) -> Manifest:
    metadata = {"name": name, "namespace": NAME}
    return {"apiVersion": API, "kind": "LocalQueue", "metadata": metadata, "spec": {"clusterQueue": name}}


def _workload(name: str, queue: str) -> Manifest:
    """Four units: two of the queue's own, and two that it borrows."""
    limits = {RESOURCE: "4"}
    container = {"name": "main", "image": "x", "resources": {"requests": limits, "limits": limits}}
    template = {"spec": {"containers": [container], "restartPolicy": "Never"}}
    spec = {"queueName": queue, "podSets": [{"name": "main", "count": 1, "template": template}]}
    metadata = {"name": name, "namespace": NAME}
    return {"apiVersion": API, "kind": "Workload", "metadata": metadata, "spec": spec}


def _p99(values: Sequence[float]) -> float:
    return statistics.quantiles(values, n=100, method="inclusive")[98]
