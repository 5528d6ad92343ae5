"""The morning rush: hundreds of people of twenty teams launch a job each, half of them by the form and half by the API,
while the worker writes their Jobs and Kueue queues them.

Once all click within ten seconds, whatever the portal can do: each is answered. Once at most twenty launches are
outstanding, from the click to the Job in the cluster: this is how fast a Job follows its click.

The peer is an asyncio client with the worker's identity, which POSTs the same Jobs in the same way: what the cluster
alone needs. Counted afterwards in database and cluster: one Job for each accepted launch, and none besides.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import statistics
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any
from urllib.parse import urlencode, urlsplit

import aiohttp

from devcluster.cli.bench import Bar, Context, Figure, benchmark
from devcluster.client.kube import Api
from devcluster.demo.http_client import Page
from tests.perf.servers.database import database_of
from tests.perf.support.cluster.crowd import Crowd, Person
from tests.perf.support.first_sights import FirstSights
from tests.support.waiting import wait_until

TEAMS = 20
WITHIN_S = 10.0
ARRIVES_WITHIN_S = 300.0
PEER = "an asyncio client that POSTs the same Jobs"
OURS = "app.kubernetes.io/managed-by=gpu-portal"
OUTSTANDING = 20
# For the last Job of a few launches, in seconds after its click; of many: three times as much.
LAST_S = 2.0
ROUNDS = 6


@dataclass
class Rush:
    """Of one rush: seconds. `clicked` and `arrived` are moments, by the name of the Job."""

    answers: list[float] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    clicked: dict[str, float] = field(default_factory=dict)
    arrived: dict[str, float] = field(default_factory=dict)

    def delays(self) -> list[float]:
        return sorted(self.arrived[name] - at for name, at in self.clicked.items())


@benchmark("rush", "300 launches within ten seconds, and 150 of which 20 are outstanding")
def rush(context: Context) -> Iterator[Figure]:
    yield from _rush(context, within=300, outstanding=150, last_s=LAST_S)


@benchmark("rush_1000", "1,000 launches within ten seconds, and 1,000 of which 20 are outstanding")
def rush_1000(context: Context) -> Iterator[Figure]:
    yield from _rush(context, within=1000, outstanding=1000, last_s=3 * LAST_S)


def _rush(context: Context, *, within: int, outstanding: int, last_s: float) -> Iterator[Figure]:
    with database_of(context.demo):
        crowd = Crowd(f"bench-rush-{within}", teams=TEAMS, each=within // TEAMS, units=2)
        ground = _Ground(context, crowd)
        try:
            together = [ground.round(f"{number}", crowd.people) for number in range(ROUNDS)]
            yield from _figures(f"rush_{within}", together, last_s)
            some = crowd.people[:outstanding]
            by_turns = [ground.round(f"o{number}", some, outstanding=OUTSTANDING) for number in range(ROUNDS)]
            name = f"rush_{outstanding}_of_which_{OUTSTANDING}_outstanding"
            yield from _job_figures(name, by_turns, last_s)
        finally:
            ground.close()
            crowd.clear(context.admin)


def _figures(name: str, rounds: Sequence[tuple[Rush, Rush]], last_s: float) -> Iterator[Figure]:
    yield Figure(f"{name}_refused", "launches", "none", [(len(one.refused), 0.0) for one, _ in rounds], Bar("ours", 0))
    answers = [(_p99(one.answers), _p99(other.answers)) for one, other in rounds]
    yield Figure(f"{name}_answer_p99", "s", PEER, answers, Bar("ours", 1.0))
    unfair = [(_unfairness(one), _unfairness(other)) for one, other in rounds]
    yield Figure(f"{name}_unfairness", "slowest team's mean delay over all teams' mean", PEER, unfair, Bar("ours", 1.5))
    yield from _job_figures(name, rounds, last_s)


def _job_figures(name: str, rounds: Sequence[tuple[Rush, Rush]], last_s: float) -> Iterator[Figure]:
    medians = [(statistics.median(one.delays()), statistics.median(other.delays())) for one, other in rounds]
    yield Figure(f"{name}_job_p50", "s after the click", PEER, medians)
    last = [(one.delays()[-1], other.delays()[-1]) for one, other in rounds]
    yield Figure(f"{name}_job_last", "s after the click", PEER, last, Bar("ours", last_s))


def _unfairness(one: Rush) -> float:
    """1: the launches of every team took as long; 20: those of one team waited for all others."""
    by_team: dict[str, list[float]] = {}
    for name, at in one.clicked.items():
        by_team.setdefault(name.rpartition("/")[0], []).append(one.arrived[name] - at)
    means = [statistics.fmean(delays) for delays in by_team.values()]
    return max(means) / statistics.fmean(means)


class _Ground:
    def __init__(self, context: Context, crowd: Crowd) -> None:
        self.crowd = crowd
        self.admin = context.admin
        self.worker = Api(context.services["kubeconfigs"]["worker"])
        self.portal = urlsplit(context.demo["portal_url"])
        self.waiting = ThreadPoolExecutor(OUTSTANDING)
        self.jobs = FirstSights(context.admin.watch("batch/v1/jobs", labels=OURS, timeout_s=3600), _new)

    def round(self, number: str, people: Sequence[Person], *, outstanding: int = 0) -> tuple[Rush, Rush]:
        """`outstanding`: at most so many wait for their Job; 0: all click within WITHIN_S."""
        ours = asyncio.run(self._ours(f"r{number}", people, outstanding))
        self._count(f"r{number}", ours)
        twins = self._twins(f"r{number}", f"p{number}")
        self._remove()
        peer = asyncio.run(self._peer(twins, outstanding))
        self._remove()
        return ours, peer

    async def _each(
        self, found: Rush, launches: Sequence[Callable[[], Coroutine[Any, Any, str]]], outstanding: int
    ) -> None:
        """`launches`: each returns the name of the Job that it asked for, or ""."""
        begins = time.perf_counter() + 0.5
        turns = asyncio.Semaphore(outstanding or len(launches))

        async def one(index: int, launch: Callable[[], Coroutine[Any, Any, str]]) -> None:
            if not outstanding:
                await asyncio.sleep(max(0.0, begins + WITHIN_S * index / len(launches) - time.perf_counter()))
            async with turns:
                clicked = time.perf_counter()
                job = await launch()
                found.answers.append(time.perf_counter() - clicked)
                if job:
                    found.clicked[job] = clicked
                if job and outstanding:
                    waited = partial(self.jobs.await_all, [job], within_s=ARRIVES_WITHIN_S)
                    found.arrived |= await asyncio.get_running_loop().run_in_executor(self.waiting, waited)

        await asyncio.gather(*(one(index, launch) for index, launch in enumerate(launches)))
        if not outstanding:
            found.arrived = self.jobs.await_all(found.clicked, within_s=ARRIVES_WITHIN_S)

    # ---- the portal --------------------------------------------------------------------------------------------------

    async def _ours(self, prefix: str, people: Sequence[Person], outstanding: int) -> Rush:
        base = f"http://127.0.0.1:{self.portal.port}"
        found = Rush()
        async with aiohttp.ClientSession(base, connector=aiohttp.TCPConnector(limit=0), cookie_jar=_no_jar()) as client:
            forms = await self._forms(client)

            async def launch(person: Person) -> str:
                name = f"{prefix}-{person.number:03}"
                answered, said = await self._launch(client, person, name, forms.get((person.team, person.number)))
                if answered in (201, 302, 303):
                    return f"{person.team}/{name}-1"
                found.refused.append(f"{answered}: {said[:200]}")
                return ""

            await self._each(found, [partial(launch, person) for person in people], outstanding)
        assert not found.refused[5:], f"{len(found.refused)} were refused: {found.refused[:3]}"
        return found

    async def _forms(self, client: aiohttp.ClientSession) -> dict[tuple[str, int], tuple[str, dict[str, str], str]]:
        """Everybody with a page has opened the form before the rush: (address, fields, cookies)."""
        found = {}
        for person in self.crowd.people:
            if person.has_token:
                continue
            url = f"/teams/{person.team}/launch"
            async with client.get(url, headers={**person.headers, "Host": self.portal.netloc}) as answer:
                page = Page(f"{self.portal.geturl()}{url}", answer.status, {}, await answer.read())
                csrf = "; ".join(f"{one.key}={one.value}" for one in answer.cookies.values())
            assert page.status == 200, page.text[:300]
            form = page.form(having="gpu_class")
            fields = {**form.fields, "kind": "job", "gpu_class": self.crowd.gpu_class.slug, "units": "1"}
            fields |= {"image": "PyTorch", "command": "train"}
            found[person.team, person.number] = (urlsplit(form.action).path or url, fields, csrf)
        return found

    async def _launch(
        self, client: aiohttp.ClientSession, person: Person, name: str, form: tuple[str, dict[str, str], str] | None
    ) -> tuple[int, str]:
        headers = {**person.headers, "Host": self.portal.netloc}
        if form is None:
            work = {"kind": "job", "gpu_class": self.crowd.gpu_class.slug, "units": 1, "image": "PyTorch"}
            body = json.dumps({**work, "name": name, "command": ["train"]})
            url, kind = f"/api/v1/workloads?team={person.team}", "application/json"
        else:
            url, fields, csrf = form
            headers["Cookie"] = "; ".join(filter(None, (person.headers["Cookie"], csrf)))
            headers["Origin"] = f"{self.portal.scheme}://{self.portal.netloc}"
            body, kind = urlencode({**fields, "name": name}), "application/x-www-form-urlencoded"
        sent = client.post(url, data=body, headers={**headers, "Content-Type": kind}, allow_redirects=False)
        async with sent as answer:
            return answer.status, await answer.text()

    def _count(self, prefix: str, found: Rush) -> None:
        """One row and one Job for each accepted launch: counted by an independent client."""
        from workloads.models import Run

        rows = Run.objects.filter(workload__namespace__name__in=self.crowd.teams, workload__name__startswith=prefix)
        assert rows.count() == len(found.clicked), f"{rows.count()} runs of {len(found.clicked)} accepted launches"
        jobs = Counter(_key(one) for one in self._all_jobs() if one["metadata"]["name"].startswith(prefix))
        assert set(jobs) == set(found.clicked)
        assert set(jobs.values()) == {1}

    # ---- the peer ----------------------------------------------------------------------------------------------------

    def _twins(self, prefix: str, twin: str) -> list[dict[str, Any]]:
        """The manifests that the portal sent, under other names."""
        from cluster.manifests import run as manifests
        from cluster.manifests.run_spec import RunSpec
        from workloads.models import Run

        rows = Run.objects.filter(workload__namespace__name__in=self.crowd.teams, workload__name__startswith=prefix)
        specs = [RunSpec.from_json(row.spec) for row in rows.order_by("pk")]
        return [manifests.job(replace(one, workload=one.workload.replace(prefix, twin, 1))) for one in specs]

    async def _peer(self, twins: Sequence[dict[str, Any]], outstanding: int) -> Rush:
        found = Rush()
        tls: ssl.SSLContext | bool = self.worker._tls or False
        headers = {"Authorization": f"Bearer {self.worker.token}", "Content-Type": "application/json"}
        connector = aiohttp.TCPConnector(limit=0, ssl=tls)
        async with aiohttp.ClientSession(self.worker.server.geturl(), connector=connector, headers=headers) as client:

            async def launch(manifest: dict[str, Any]) -> str:
                namespace = manifest["metadata"]["namespace"]
                sent = client.post(f"/apis/batch/v1/namespaces/{namespace}/jobs", data=json.dumps(manifest))
                async with sent as answer:
                    assert answer.status == 201, await answer.text()
                return _key(manifest)

            await self._each(found, [partial(launch, one) for one in twins], outstanding)
        return found

    # ---- between rounds ----------------------------------------------------------------------------------------------

    def _all_jobs(self) -> list[dict[str, Any]]:
        found = self.admin.list("batch/v1/jobs", labels=OURS)
        return [one for one in found if one["metadata"]["namespace"] in self.crowd.teams]

    def _remove(self) -> None:
        """Deletes the rows, then the Jobs of both sides; returns when Kueue and the mirror have forgotten them."""
        from cluster.models import MirrorWorkload

        self.crowd.forget_work()
        for team in self.crowd.teams:
            path = f"/apis/batch/v1/namespaces/{team}/jobs"
            self.admin.request("DELETE", path, params={"labelSelector": OURS, "propagationPolicy": "Background"})
        left = MirrorWorkload.objects.filter(namespace__in=self.crowd.teams)
        wait_until(lambda: not left.exists(), within_s=ARRIVES_WITHIN_S, every_s=0.2, what="the mirror is empty")

    def close(self) -> None:
        self.jobs.stop()
        self.waiting.shutdown(wait=False)


def _new(kind: str, one: dict[str, Any]) -> str:
    return _key(one) if kind == "ADDED" else ""


def _key(one: dict[str, Any]) -> str:
    return f"{one['metadata']['namespace']}/{one['metadata']['name']}"


def _no_jar() -> aiohttp.DummyCookieJar:
    return aiohttp.DummyCookieJar()


def _p99(values: list[float]) -> float:
    return statistics.quantiles(values, n=100, method="inclusive")[98]
