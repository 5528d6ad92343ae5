"""What a launch costs compared with the API request that it ends in: from the click to the Job in the cluster.

Portal: from the first byte of the launch form's POST, through the gateway, until an independent watch shows the Job.
Limit: a POST of the same manifest with the worker's identity on a kept-alive connection, on the same watch. Both are
measured once idle, and once while another team has 20 launches in progress, through the same gateway, web, worker and
watcher.
"""

from __future__ import annotations

import http.client
import queue
import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from urllib.parse import urlsplit

from cluster.manifests import run as manifests
from cluster.manifests.run_spec import RunSpec
from devcluster.cli.bench import Bar, Context, Figure, benchmark
from devcluster.client.kube import Api, Watch
from devcluster.demo.http_client import BrowserSession, Form, Page
from devcluster.demo.observer import KUEUE, ClusterObserver
from tests.perf.servers.database import database_of
from tests.perf.support.cluster.crowd import Crowd, Person
from tests.perf.support.requests_in_flight import Flights, in_flight

UNITS = 8
ROUNDS = 6
LAUNCHES = 15
WITHIN_S = 30.0
IN_FLIGHT = 20
OURS = "app.kubernetes.io/managed-by=gpu-portal"


# (Job, Pod) of the portal, (Job, Pod) of the raw POST; milliseconds.
Sample = tuple[tuple[float, float], tuple[float, float]]


@benchmark("click", "from the click on Launch to the Job in the cluster, over a raw POST of the same Job")
def click(context: Context) -> Iterator[Figure]:
    with database_of(context.demo):
        # Teams of its own: those of the demo always work.
        crowd = Crowd("bench-click", teams=2, each=2, units=UNITS)
        ground = _Ground(context, crowd)
        try:
            yield from _figures("click", [ground.round(f"c{number}") for number in range(ROUNDS)])
            with ground.launches_of_others(IN_FLIGHT) as flights:
                rounds = []
                for number in range(ROUNDS):
                    rounds.append(ground.round(f"b{number}"))
                    flights.check()
            yield from _figures(f"click_with_{IN_FLIGHT}", rounds)
        finally:
            ground.close()
            crowd.clear(context.admin)


def _figures(name: str, rounds: list[list[Sample]]) -> Iterator[Figure]:
    for which, what, bars in ((0, "job", (Bar("delta", 25), Bar("delta", 100))), (1, "pod", (None, None))):
        pairs = [([ours[which] for ours, _ in one], [peer[which] for _, peer in one]) for one in rounds]
        for end, bar, of in zip(("p50", "p99"), bars, (statistics.median, _p99), strict=True):
            medians = [(of(ours), of(peer)) for ours, peer in pairs]
            yield Figure(f"{name}_{what}_{end}", "ms", "raw POST of the same Job", medians, bar)


def _p99(values: list[float]) -> float:
    return statistics.quantiles(values, n=100, method="inclusive")[98]


class _Ground:
    """A signed-in person of the first team, two watches and a connection with the worker's identity; the second team
    launches meanwhile.
    """

    def __init__(self, context: Context, crowd: Crowd) -> None:
        from tenants.models import Membership

        self.team, self.others = crowd.teams
        # The one with the token removes what the one at the page has launched.
        Membership.objects.filter(tenant__slug=self.team).update(role=Membership.Role.OWNER)
        self.url = context.demo["portal_url"]
        self.slug = crowd.gpu_class.slug
        self.seen = ClusterObserver(context.admin, self.team)
        self.worker = Api(context.services["kubeconfigs"]["worker"])
        by_team = {(one.team, one.has_token): one for one in crowd.people}
        self.api = self._session(by_team[self.team, True])
        self.other = by_team[self.others, True]
        self.browser = self._session(by_team[self.team, False])
        self.page, self.form = self._launch_form()
        self.jobs = _Arrivals(context.admin.watch("batch/v1/jobs", namespace=self.team, labels=OURS, timeout_s=3600))
        self.pods = _Arrivals(context.admin.watch("v1/pods", namespace=self.team, labels=OURS, timeout_s=3600))

    def _session(self, person: Person) -> BrowserSession:
        if person.has_token:
            return BrowserSession(self.url, token=person.headers["Authorization"].removeprefix("Bearer "))
        session = BrowserSession(self.url)
        name, _, value = person.headers["Cookie"].partition("=")
        session.cookies[urlsplit(self.url).netloc] = {name: value}
        return session

    def launches_of_others(self, number: int) -> AbstractContextManager[Flights]:
        work = {"kind": "job", "gpu_class": self.slug, "units": 1, "image": "PyTorch", "command": ["train"]}
        return in_flight(number, visit=lambda: self._session(self.other), team=self.others, work=work)

    def round(self, prefix: str) -> list[Sample]:
        return [self.sample(f"{prefix}-{index:02}") for index in range(LAUNCHES)]

    def sample(self, name: str) -> Sample:
        """Measures one launch and one raw POST, each on a quiet cluster; both are removed."""
        from workloads.models import Run

        self._settle()
        twin = f"r{name}"
        began = time.perf_counter()
        launched = self.browser.submit(self.page, self.form, name=name)
        ours = tuple((arrivals.of(f"{name}-1") - began) * 1000 for arrivals in (self.jobs, self.pods))
        assert launched.status == 200, f"{launched.status}: {launched.words()[:200]}"
        spec = RunSpec.from_json(Run.objects.get(workload__namespace__name=self.team, workload__name=name).spec)
        self._remove(name)
        self._settle()
        manifest = manifests.job(replace(spec, workload=twin))
        began = time.perf_counter()
        self.worker.create(manifest)
        raw = tuple((arrivals.of(f"{twin}-1") - began) * 1000 for arrivals in (self.jobs, self.pods))
        self.seen.admin.delete("batch/v1/jobs", f"{twin}-1", namespace=self.team)
        self.seen.until("the end of the raw Job", lambda: not self.seen.of("v1/pods", twin))
        return (ours[0], ours[1]), (raw[0], raw[1])

    def _settle(self) -> None:
        """Waits until the previous sample is gone: Kueue's Workload, the mirror's rows of it, and leased rows.

        Otherwise both sides would be measured while the cluster still cleans up after the other one.
        """
        self.seen.until("a quiet cluster", self._is_quiet)

    def _is_quiet(self) -> bool:
        from cluster.models import MirrorJob, MirrorPod, MirrorWorkload
        from workloads.models import Workload

        if self.seen.admin.list(f"{KUEUE}/workloads", namespace=self.team):
            return False
        leased = Workload.objects.filter(namespace__name=self.team, leased_until__isnull=False)
        mirrored = (rows.objects.filter(namespace=self.team) for rows in (MirrorWorkload, MirrorJob, MirrorPod))
        return not any(rows.exists() for rows in (leased, *mirrored))

    def close(self) -> None:
        for arrivals in (self.jobs, self.pods):
            arrivals.watch.stop()

    def _launch_form(self) -> tuple[Page, Form]:
        page = _ok(self.browser.get(f"/teams/{self.team}/launch"))
        form = page.form(having="gpu_class")
        form.fields |= {"kind": "job", "gpu_class": self.slug, "units": "1", "image": "PyTorch", "command": "train"}
        return page, form

    def _remove(self, name: str) -> None:
        removed = self.api.api("DELETE", f"/api/v1/workloads/{name}?team={self.team}")
        assert removed.status == 202, f"{removed.status}: {removed.text[:200]}"
        self.seen.until("the end of the Job", lambda: self.seen.job(name) is None and not self.seen.of("v1/pods", name))


class _Arrivals:
    """The time at which an independent watch received ADDED for each name."""

    def __init__(self, watch: Watch) -> None:
        self.watch = watch
        self._events: queue.Queue[tuple[str, float]] = queue.Queue()
        threading.Thread(target=self._note, daemon=True).start()

    def of(self, run: str) -> float:
        deadline = time.monotonic() + WITHIN_S
        while True:
            name, at = self._events.get(timeout=max(0.1, deadline - time.monotonic()))
            if name == run:
                return at

    def _note(self) -> None:
        try:
            for kind, obj in self.watch:
                if kind == "ADDED":
                    labels = obj["metadata"].get("labels", {})
                    name = labels.get("batch.kubernetes.io/job-name", obj["metadata"]["name"])
                    self._events.put((name, time.perf_counter()))
        except (OSError, http.client.HTTPException):
            return  # stopped


def _ok(page: Page) -> Page:
    assert page.status in (200, 201), f"{page.url} answered {page.status}: {page.text[:300]}"
    return page
