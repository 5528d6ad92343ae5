"""How far a page lags behind the cluster: from a pod's event on a raw watch to the byte at every viewer.

1,000 people of 50 teams have a stream open, half of each team on its home, half on the page of the workload whose pod
changes. The benchmark has its own watcher, doors process and database, which follow the cluster of the portal that the
benchmark was started with. The pods are real and for a scheduler that does not exist, so that only the benchmark
changes them. The raw watch client reads the same events and does nothing else. Each delay is of one change at one
viewer.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from devcluster.cli.bench import Bar, Context, Figure, benchmark
from devcluster.client.kube import Api, ApiError, Watch
from tests.perf.servers.database import own_database
from tests.perf.servers.redis import own_redis
from tests.perf.servers.served import served
from tests.perf.servers.watcher import until, watcher
from tests.perf.support.viewers import Viewers, check_files

TEAMS, EACH = 50, 20
STREAMS = TEAMS * EACH
ROUNDS = 6
CHANGES = 60
# The pause between two changes: they belong to pages of different teams and are not one burst.
PAUSE_S = 0.05
HEARD_WITHIN_S = 30.0
P50_MS, P99_MS = 25, 100
PEER = "from the write to a raw watch client"
POD = "seen-1-x"
LABELS = {"gpu-portal/kind": "job", "gpu-portal/class": "a100", "bench": "live"}


@benchmark("live", f"from an event of the cluster to the byte at the viewer, with {STREAMS:,} open streams")
def live(context: Context) -> Iterator[Figure]:
    services, admin = context.services, context.admin
    check_files(STREAMS)
    prefix = f"bench-live-{os.getpid()}"
    # Its own Redis, so that only one watcher sends hints: the portal's own watcher sees these pods, too.
    with own_redis() as redis_url, own_database("live", database_url=services["database_url"], redis_url=redis_url):
        scene = _Scene(admin, prefix)
        try:
            with watcher(services["kubeconfigs"]["watcher"]):
                scene.set_up()
                with served(NOTEBOOKS_DOMAIN="notebooks.localhost") as doors:
                    rounds = _measure(scene, doors.port)
        finally:
            scene.remove()
    for name, share, at_most in (("p50", 0.5, P50_MS), ("p99", 0.99, P99_MS)):
        pairs = [(_quantile(ours, share), _quantile(peer, share)) for ours, peer in rounds]
        yield Figure(f"live_{name}_over_raw", "ms", PEER, pairs, Bar("ours", at_most))


def _quantile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def _measure(scene: _Scene, port: int) -> list[tuple[list[float], list[float]]]:
    """For each round: milliseconds of every viewer behind the raw client, and of the raw client behind the write."""
    heard = _Heard()
    asked = [one for team in scene.audience for one in team]
    raw = scene.admin.watch("v1/pods", labels="bench=live", timeout_s=600)
    threading.Thread(target=_note, args=(raw, heard), daemon=True).start()
    try:
        with Viewers(port, asked, heard.at_viewer) as viewers:
            rounds = [_round(scene, heard, number) for number in range(ROUNDS)]
            assert not viewers.gone, f"{viewers.gone} streams ended"
    finally:
        raw.stop()
    return rounds


def _round(scene: _Scene, heard: _Heard, number: int) -> tuple[list[float], list[float]]:
    ours, peer, pause = [], [], threading.Event()
    for change in range(CHANGES):
        team = change % TEAMS
        viewers = range(team * EACH, (team + 1) * EACH)
        heard.expect(set(viewers))
        written_at = time.perf_counter()
        version = scene.change(team, 100 + number * CHANGES + change)
        event_at, viewer_at = heard.wait(version)
        peer.append((event_at - written_at) * 1000)
        ours += [(at - event_at) * 1000 for at in viewer_at]
        pause.wait(PAUSE_S)
    return ours, peer


@dataclass
class _Heard:
    """What the raw client and the viewers of one team have received of one change."""

    _events: dict[str, float] = field(default_factory=dict)
    _missing: set[int] = field(default_factory=set)
    _at: list[float] = field(default_factory=list)
    _news: threading.Condition = field(default_factory=threading.Condition)

    def expect(self, viewers: set[int]) -> None:
        with self._news:
            self._events, self._missing, self._at = {}, viewers, []

    def at_viewer(self, index: int, data: bytes, at: float) -> None:
        # Between events a server sends keep-alive comments.
        if b"event:" not in data:
            return
        with self._news:
            if index in self._missing:
                self._missing.discard(index)
                self._at.append(at)
                self._news.notify_all()

    def at_raw_client(self, version: str, at: float) -> None:
        with self._news:
            self._events[version] = at
            self._news.notify_all()

    def wait(self, version: str) -> tuple[float, list[float]]:
        with self._news:
            done = self._news.wait_for(lambda: not self._missing and version in self._events, HEARD_WITHIN_S)
            assert done, f"{len(self._missing)} viewers did not hear within {HEARD_WITHIN_S:.0f} s; raw: {self._events}"
            return self._events[version], self._at


def _note(watch: Watch, heard: _Heard) -> None:
    for _event, obj in watch:
        heard.at_raw_client(obj["metadata"]["resourceVersion"], time.perf_counter())


class _Scene:
    """Teams with one workload each, which has its units and is not yet on a node."""

    def __init__(self, admin: Api, prefix: str) -> None:
        from cluster.models import Cluster

        self.admin, self.prefix = admin, prefix
        self.cluster = Cluster.objects.create(name="main", notebooks_domain="notebooks.localhost")
        self.namespaces = [f"{prefix}-{number}" for number in range(TEAMS)]
        self.audience: list[list[Any]] = []

    def set_up(self) -> None:
        from django.db import connections

        from cluster.models import MirrorObject, MirrorPod
        from cluster.reads import queries as mirror
        from tests.perf.support.teams import audience

        until(lambda: mirror.as_of(self.cluster.pk).is_current, "The watcher's first list")
        for name in self.namespaces:
            self.admin.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        seen = MirrorObject.objects.filter(kind="Namespace", name__in=self.namespaces)
        # Teams are made afterwards: the watcher forgets what it knows of a namespace that belongs to no team.
        until(lambda: seen.count() == TEAMS, "The namespaces in the mirror")
        self._rows()
        self.audience = [team.asked for team in audience(self.namespaces, each=EACH)]
        until(lambda: MirrorPod.objects.filter(name=POD).count() == TEAMS, "The pods in the mirror")
        connections.close_all()

    def _rows(self) -> None:
        from accounts.models import User
        from tests.load.long_queue import wait
        from tests.support.rows import make

        gpu_class, person = make.gpu_class(self.cluster), User.objects.create(email="owner@example.org", name="Owner")
        for name in self.namespaces:
            team = make.tenant(self.cluster, slug=name)
            make.grant(team, gpu_class, units=4)
            wait(team.namespaces.get(), gpu_class, by=person, number=4)
        self._admit()

    def _admit(self) -> None:
        """Gives the first workload of every team its units. The watcher does not touch rows that it never wrote."""
        from cluster.models import MirrorJob, MirrorWorkload
        from portal.core.due import owner_label
        from workloads.models import Workload

        Workload.objects.filter(name="waits-0").update(name="seen")
        MirrorJob.objects.filter(name="waits-0-1").update(name="seen-1", run="seen-1")
        for workload in Workload.objects.filter(name="seen").select_related("namespace"):
            namespace = workload.namespace.name
            job = MirrorJob.objects.get(namespace=namespace, name="seen-1")
            queued = MirrorWorkload.objects.get(namespace=namespace, job_uid=job.uid)
            true = {"status": "True", "reason": "", "message": "", "since": "2026-11-21T09:00:00Z"}
            queued.record["conditions"] = [{"type": name, **true} for name in ("Admitted", "QuotaReserved")]
            queued.save()
            job.record |= {"suspend": False, "active": 1, "started_at": "2026-11-21T09:00:00Z"}
            job.save()
            self._pod(namespace, owner_label(workload))

    def _pod(self, namespace: str, owner: str) -> None:
        labels = {**LABELS, "gpu-portal/owner": owner, "gpu-portal/run": "seen-1", "gpu-portal/workload": "seen"}
        spec = {
            "schedulerName": "bench-live",
            "containers": [{"name": "main", "image": "image"}],
            "automountServiceAccountToken": False,
        }
        metadata = {"name": POD, "namespace": namespace, "labels": labels}
        until(
            lambda: self._made({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}),
            f"The pod of {namespace}",
        )

    def _made(self, pod: dict[str, Any]) -> bool:
        try:
            self.admin.create(pod)
        except ApiError as error:
            # The namespace's service account is created a moment later.
            if error.status == 403:
                return False
            raise
        return True

    def change(self, team: int, number: int) -> str:
        """Writes the scheduler's message for `number` nodes; returns the resource version."""
        message = f"0/{number} nodes are available: {number} Insufficient nvidia.com/gpu."
        # For hours: in the first 15 s (PATIENCE in workloads/status/phase.py) a page does not show the message yet.
        since = {"lastTransitionTime": "2026-11-21T09:00:00Z"}
        scheduled = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message, **since}
        changed = self.admin.patch_status("v1/pods", POD, {"conditions": [scheduled]}, namespace=self.namespaces[team])
        return str(changed["metadata"]["resourceVersion"])

    def remove(self) -> None:
        for name in self.namespaces:
            with contextlib.suppress(ApiError):
                self.admin.delete("v1/pods", POD, namespace=name)
                self.admin.delete("v1/namespaces", name)
