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
from datetime import UTC, datetime, timedelta

import psycopg

from cluster.manifests import run as manifests
from cluster.manifests.run_spec import RunSpec
from devcluster.cli.bench import Bar, Context, Figure, benchmark
from devcluster.client.kube import Api, Watch
from devcluster.demo.http_client import BrowserSession, Form, Page
from devcluster.demo.observer import KUEUE, ClusterObserver
from tests.perf.support.requests_in_flight import Flights, in_flight

TEAM = "team-a"
UNITS = 8
ROUNDS = 6
LAUNCHES = 15
WITHIN_S = 30.0
OTHERS = "team-c"
IN_FLIGHT = 20
OURS = "app.kubernetes.io/managed-by=gpu-portal"
SPEC = """
    SELECT run.spec FROM workloads_run run JOIN workloads_workload workload ON workload.id = run.workload_id
     WHERE workload.name = %s"""

BUSY = """
    SELECT (SELECT count(*) FROM workloads_workload workload JOIN tenants_namespace namespace
                ON namespace.id = workload.namespace_id AND namespace.name = %(team)s
             WHERE workload.leased_until IS NOT NULL)
         + (SELECT count(*) FROM cluster_mirrorworkload WHERE namespace = %(team)s)
         + (SELECT count(*) FROM cluster_mirrorjob WHERE namespace = %(team)s)
         + (SELECT count(*) FROM cluster_mirrorpod WHERE namespace = %(team)s)"""


# (Job, Pod) of the portal, (Job, Pod) of the raw POST; milliseconds.
Sample = tuple[tuple[float, float], tuple[float, float]]


@benchmark("click", "from the click on Launch to the Job in the cluster, over a raw POST of the same Job")
def click(context: Context) -> Iterator[Figure]:
    ground = _Ground(context)
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


def _figures(name: str, rounds: list[list[Sample]]) -> Iterator[Figure]:
    for which, what, bars in ((0, "job", (Bar("delta", 25), Bar("delta", 100))), (1, "pod", (None, None))):
        pairs = [([ours[which] for ours, _ in one], [peer[which] for _, peer in one]) for one in rounds]
        for end, bar, of in zip(("p50", "p99"), bars, (statistics.median, _p99), strict=True):
            medians = [(of(ours), of(peer)) for ours, peer in pairs]
            yield Figure(f"{name}_{what}_{end}", "ms", "raw POST of the same Job", medians, bar)


def _p99(values: list[float]) -> float:
    return statistics.quantiles(values, n=100, method="inclusive")[98]


class _Ground:
    """A team with quota, a signed-in person, two watches and a connection with the worker's identity."""

    def __init__(self, context: Context) -> None:
        self.alice = context.account("Alice")
        self.url = context.demo["portal_url"]
        self.seen = ClusterObserver(context.admin, TEAM)
        self.worker = Api(context.services["kubeconfigs"]["worker"])
        self.database = psycopg.connect(context.demo["database_url"], autocommit=True)
        self.api = BrowserSession(self.url, token=self.alice["token"])
        self.slug = self._class()
        self.charlie = context.account("Charlie")
        dana = BrowserSession(self.url, token=context.account("Dana")["token"])
        self._grant(TEAM, self.api, dana)
        self._grant(OTHERS, BrowserSession(self.url, token=self.charlie["token"]), dana)
        self.browser = BrowserSession(self.url)
        self.page, self.form = self._launch_form()
        self.jobs = _Arrivals(context.admin.watch("batch/v1/jobs", namespace=TEAM, labels=OURS, timeout_s=3600))
        self.pods = _Arrivals(context.admin.watch("v1/pods", namespace=TEAM, labels=OURS, timeout_s=3600))

    def launches_of_others(self, number: int) -> AbstractContextManager[Flights]:
        work = {"kind": "job", "gpu_class": self.slug, "units": 1, "image": "PyTorch", "command": ["train"]}
        token = self.charlie["token"]
        return in_flight(number, visit=lambda: BrowserSession(self.url, token=token), team=OTHERS, work=work)

    def round(self, prefix: str) -> list[Sample]:
        return [self.sample(f"{prefix}-{index:02}") for index in range(LAUNCHES)]

    def sample(self, name: str) -> Sample:
        """Measures one launch and one raw POST, each on a quiet cluster; both are removed."""
        self._settle()
        twin = f"r{name}"
        began = time.perf_counter()
        launched = self.browser.submit(self.page, self.form, name=name)
        ours = tuple((arrivals.of(f"{name}-1") - began) * 1000 for arrivals in (self.jobs, self.pods))
        assert launched.status == 200, f"{launched.status}: {launched.words()[:200]}"
        row = self.database.execute(SPEC, [name]).fetchone()
        assert row is not None, f"{name} has no run"
        self._remove(name)
        self._settle()
        manifest = manifests.job(replace(RunSpec.from_json(row[0]), workload=twin))
        began = time.perf_counter()
        self.worker.create(manifest)
        raw = tuple((arrivals.of(f"{twin}-1") - began) * 1000 for arrivals in (self.jobs, self.pods))
        self.seen.admin.delete("batch/v1/jobs", f"{twin}-1", namespace=TEAM)
        self.seen.until("the end of the raw Job", lambda: not self.seen.of("v1/pods", twin))
        return (ours[0], ours[1]), (raw[0], raw[1])

    def _settle(self) -> None:
        """Waits until the previous sample is gone: Kueue's Workload, the mirror's rows of it, and leased rows.

        Otherwise both sides would be measured while the cluster still cleans up after the other one.
        """
        self.seen.until("a quiet cluster", self._is_quiet)

    def _is_quiet(self) -> bool:
        left = self.seen.admin.list(f"{KUEUE}/workloads", namespace=TEAM)
        return not left and self.database.execute(BUSY, {"team": TEAM}).fetchone() == (0,)

    def close(self) -> None:
        for arrivals in (self.jobs, self.pods):
            arrivals.watch.stop()
        self.database.close()

    def _class(self) -> str:
        found = self.api.api("GET", "/api/v1/classes?limit=100").json()["items"]
        whole = (one for one in found if one["sharing"] == "none" and one["partition"] == "none")
        return str(next(one["slug"] for one in whole if one["resource"] == "nvidia.com/gpu"))

    def _grant(self, team: str, owner: BrowserSession, dana: BrowserSession) -> None:
        """Replaces the quota that the demo's team already requested."""
        for one in _ok(owner.api("GET", f"/api/v1/requests?team={team}&state=pending")).json()["items"]:
            _ok(owner.api("POST", f"/api/v1/requests/{one['id']}/withdraw"))
        lines = [
            {"gpu_class": self.slug, "units": UNITS, "ends_at": (datetime.now(UTC) + timedelta(days=1)).isoformat()}
        ]
        asked = {"team": team, "justification": "A benchmark.", "lines": lines}
        filed = _ok(owner.api("POST", "/api/v1/requests", asked)).json()
        # The demo's own teams have most of the class.
        anyway = {"over_promise": True, "over_promise_reason": "A benchmark."}
        decision = {"lines": [{"id": line["id"], "approve": True} for line in filed["lines"]], **anyway}
        _ok(dana.api("POST", f"/api/v1/requests/{filed['id']}/decide", decision))

    def _launch_form(self) -> tuple[Page, Form]:
        page = self.browser.get("/login")
        form = page.form(having="password")
        user_field = "username" if "username" in form.fields else "email"
        self.browser.submit(page, form, **{user_field: self.alice["email"], "password": self.alice["password"]})
        page = _ok(self.browser.get(f"/teams/{TEAM}/launch"))
        form = page.form(having="gpu_class")
        form.fields |= {"kind": "job", "gpu_class": self.slug, "units": "1", "image": "PyTorch", "command": "train"}
        return page, form

    def _remove(self, name: str) -> None:
        removed = self.api.api("DELETE", f"/api/v1/workloads/{name}?team={TEAM}")
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
