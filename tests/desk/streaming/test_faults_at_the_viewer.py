"""Faults between the cluster and an open page: the page recovers in time, never goes back, and is marked stale
meanwhile.

The pod of one job reports a number that only grows; the page must never show a smaller number after a greater one.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db.models import F
from django.test import Client

from accounts.core.actor import Actor
from accounts.models import User
from cluster.models import Cluster, MirrorEpoch
from cluster.reads import queries as mirror
from devcluster.client.kube import Api
from devcluster.client.types import Json
from devcluster.faults.api_proxy import ApiProxy
from devcluster.kubelet.scripted import ScriptedKubelet
from tenants.models import Namespace
from tests.support.cluster.worker import Worker
from tests.support.processes.onlooker import Onlooker, Versions
from tests.support.processes.streaming import Doors
from tests.support.processes.watchers import Watchers
from tests.support.waiting import wait_until
from workloads.launch import actions
from workloads.launch.types import LaunchSpec

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(400)]

RIGHT_WITHIN_S = 60.0
# A dead watcher is detected by the age of its heartbeat, and streams compare versions every 15 s.
SAID_WITHIN_S = 45.0
PAGE = "state_workload"
SECOND = timedelta(seconds=1)
NUMBER = re.compile(r"number (\d+)")


@dataclass
class Scene:
    """A job on a node, an open page of it, and a proxy between the watcher and the API server."""

    namespace: Namespace
    kubelet: ScriptedKubelet
    pod: Json
    proxy: ApiProxy
    watchers: Watchers
    viewer: Onlooker
    versions: Versions = field(default_factory=Versions)
    number: int = 0

    def tick(self, times: int = 1) -> None:
        """The pod reports the next number and the API server stores it."""
        for _ in range(times):
            self.number += 1
            self.kubelet.creating(self.pod, f"number {self.number}")

    def numbers(self) -> list[int]:
        found = [NUMBER.search(one.text) for one in [*self.viewer.sights] if one.event == PAGE]
        return [int(one[1]) for one in found if one]

    def live(self) -> dict[str, Any] | None:
        found = self.viewer.ask("/api/v1/teams/team-a/live?wait=0")
        if found is not None:
            self.versions.note(found)
        return found

    def is_right(self) -> bool:
        """True if the stream shows the cluster's number, and neither the stream nor the snapshot is marked stale."""
        live = self.live()
        shown = self.numbers()[-1:]
        return shown == [self.number] and not self.viewer.says_stale(PAGE) and live is not None and not live["is_stale"]

    def is_said(self) -> bool:
        """True if the open page and the snapshot are both marked stale."""
        live = self.live()
        return live is not None and bool(live["is_stale"]) and self.viewer.says_stale(PAGE)

    def snapshot_is_stale(self) -> bool:
        live = self.live()
        return live is not None and bool(live["is_stale"])

    def until(self, is_so: Callable[[], bool], within_s: float, what: str) -> float:
        began = time.monotonic()
        wait_until(is_so, within_s=within_s, every_s=0.1, what=what, story=self.story)
        return time.monotonic() - began

    def ours(self, _call: object, event: Json | None) -> bool:
        return event is not None and event["object"]["metadata"]["name"] == self.pod["metadata"]["name"]

    def story(self) -> str:
        logs = [self.watchers.log(number).read_text()[-2000:] for number in range(len(self.watchers.processes))]
        shown = [f"{one.at:.1f} {one.text[:200]}" for one in self.viewer.sights[-5:]]
        return "\n".join([f"number {self.number}, seen {self.numbers()[-20:]}", *shown, *logs])


@pytest.fixture
def proxy(services: dict[str, Any], tmp_path: Path) -> Iterator[ApiProxy]:
    with ApiProxy(services["kubeconfigs"]["watcher"], tmp_path) as found:
        yield found


@pytest.fixture
def watchers(cluster: Cluster, proxy: ApiProxy, tmp_path: Path) -> Iterator[Watchers]:
    found = Watchers(str(proxy.kubeconfig), tmp_path)
    yield found
    found.end()


@pytest.fixture
def scene(
    provisioned: object, cluster: Cluster, namespace_a: Namespace, job: LaunchSpec, by_alice: Actor, alice: User,
    worker: Worker, admin: Api, proxy: ApiProxy, watchers: Watchers, doors: Doors,
) -> Iterator[Scene]:  # fmt: skip
    watchers.start("--silence", "5")
    wait_until(lambda: mirror.is_known(cluster.pk, "Job", "Pod", "Workload", "Node"), within_s=90)
    kubelet = ScriptedKubelet(admin)
    session = Client()
    session.force_login(alice)
    headers = {"Cookie": f"session={session.cookies['session'].value}"}
    with kubelet.claim(namespace_a.name):
        actions.launch("team-a", job, by=by_alice)
        bound: list[Json] = []

        def is_bound() -> bool:
            pods = admin.list("v1/pods", namespace=namespace_a.name)
            bound[:] = [pod for pod in pods if pod["spec"].get("nodeName")]
            return bool(bound)

        worker(is_bound)
        with Onlooker(doors.port, f"/live/{namespace_a.name}?workload=train", headers) as viewer:
            yield Scene(namespace_a, kubelet, bound[0], proxy, watchers, viewer)


def doubled(scene: Scene) -> None:
    rule = scene.proxy.when("watch", "pods", times=None, predicate=scene.ours).duplicate()
    scene.tick(3)
    rule.wait(times=3)


def reordered(scene: Scene) -> None:
    """Of two events, the first is delivered after the second; twice."""
    for _ in range(2):
        rule = scene.proxy.when("watch", "pods", predicate=scene.ours).reorder()
        scene.tick()
        rule.wait()
        scene.tick()


def dropped(scene: Scene) -> None:
    """The last event is lost, and no other event of the pod follows."""
    scene.tick()
    rule = scene.proxy.when("watch", "pods", predicate=scene.ours).drop_event()
    scene.tick()
    rule.wait()


def too_old(scene: Scene) -> None:
    """410 Gone during a watch; until the list that follows is complete, the state is not shown as current."""
    go_on = threading.Event()
    # Matches the list of the whole cluster: the search for lost objects lists their namespace only.
    whole = scene.proxy.when("list", "pods", predicate=lambda call, _event: not call.namespace)
    whole.call_before(lambda: go_on.wait(60))
    gone = scene.proxy.when("watch", "pods", predicate=scene.ours).gone()
    try:
        scene.tick()
        gone.wait()
        scene.tick()
        scene.until(scene.snapshot_is_stale, SAID_WITHIN_S, "the snapshot is called old")
    finally:
        go_on.set()


def cut(scene: Scene) -> None:
    scene.proxy.cut()
    scene.tick(2)


def silent(scene: Scene) -> None:
    """The API server accepts connections and does not answer."""
    scene.proxy.pause()
    scene.tick()
    scene.until(scene.is_said, SAID_WITHIN_S, "page and snapshot are called old")
    assert scene.numbers()[-1] < scene.number
    scene.proxy.resume()


def killed(scene: Scene) -> None:
    """SIGKILL to the watcher; no other watcher starts for a while."""
    scene.watchers.processes[-1].kill()
    scene.tick()
    # Simulates that 15 of the 20 s that the heartbeat may be late are over.
    MirrorEpoch.objects.update(beat_at=F("beat_at") - 15 * SECOND)
    scene.until(scene.is_said, SAID_WITHIN_S, "page and snapshot are called old")
    assert scene.numbers()[-1] < scene.number
    scene.watchers.start("--silence", "5")


FAULTS = (doubled, reordered, dropped, too_old, cut, silent, killed)


def test_whatever_happens_the_page_is_right_in_time_and_never_goes_back(scene: Scene) -> None:
    scene.tick()
    scene.until(scene.is_right, RIGHT_WITHIN_S, "the page shows the job")
    for fault in FAULTS:
        fault(scene)
        scene.proxy.forget()
        scene.until(scene.is_right, RIGHT_WITHIN_S, f"the page is right after {fault.__name__}")
    shown = scene.numbers()
    assert shown == sorted(shown), shown
    assert scene.viewer.breaks == 0
