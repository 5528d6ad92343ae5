"""What one person can still do while a few others ask for lists ten times as fast as web can answer them.

One process of web on one core, so that it can be filled; the clients have the other cores. Each round measures a quiet
process (the peer), then floods it: twenty people ask for history, requests and workloads from 200 connections, more
than may wait, at ten times the rate that two connections got. Meanwhile a person signs in, opens home and stops a run,
again and again. The limits of a minute are off, since they would end the flood.

No request of that person may fail, and nothing may be answered with 500 or with a 503 that does not say when to return:
both end the benchmark with an error, whatever the median is.
"""

from __future__ import annotations

import http.client
import os
import statistics
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from devcluster.cli.bench import Bar, Context, Figure, benchmark
from devcluster.demo.http_client import BrowserSession
from tests.perf.api import UNLIMITED
from tests.perf.servers.database import own_database
from tests.perf.servers.served import Served, served_by_gunicorn
from tests.perf.support.pace import Asked, Pace
from tests.support.waiting import wait_until

ROUNDS = 6
TEAMS = 300
TIMES = 10
PEOPLE = 20
CONNECTIONS = 200
FLOOD_S = 8.0
QUIET_REQUESTS = 30
RUNS = 400
LISTS = ("/teams/team-0/history", "/teams/team-0/requests", "/teams/team-0/workloads")
RECOVERS_WITHIN_S = 5.0
STEPS = ("sign_in", "home", "stop")


@benchmark("overload", f"what goes first while lists are asked for {TIMES} times as fast as possible", cluster=False)
def overload(context: Context) -> Iterator[Figure]:
    services = context.services
    with own_database("overload", database_url=services["database_url"], redis_url=services["redis_url"]):
        ground = Ground()
        rounds = [_round(ground) for _ in range(ROUNDS)]
    for step in STEPS:
        yield Figure(f"overload_{step}_p50", "ms", "a quiet process", [one.steps[step] for one in rounds])
    yield Figure("overload_lists", "a second", "two connections", [one.lists for one in rounds])
    yield Figure("overload_refused", "share of lists", "none", [(one.refused, 0.0) for one in rounds])
    yield Figure(
        "overload_recovery", "s", "none", [(one.recovery_s, 0.0) for one in rounds], Bar("ours", RECOVERS_WITHIN_S)
    )


@dataclass(frozen=True)
class _Round:
    """`steps`, `lists`: (flooded, quiet)."""

    steps: dict[str, tuple[float, float]]
    lists: tuple[float, float]
    refused: float
    recovery_s: float


class Ground:
    """A team with jobs that run, and twenty people who read too much."""

    def __init__(self) -> None:
        from django.db import connections
        from django.test import Client

        from accounts.models import User
        from cluster.models import Cluster
        from tenants.models import Tenant
        from tests.load.many_teams import many_teams
        from tests.support.rows import make, running

        many_teams(Cluster.objects.create(name="main", notebooks_domain="notebooks.localhost"), teams=TEAMS, waiting=60)
        team = Tenant.objects.get(slug="team-0")
        namespace, owner = team.namespaces.get(), User.objects.get(email="owner-0@example.org")
        owner.set_password(make.PASSWORD)
        owner.save()
        gpu_class = make.gpu_class(namespace.cluster, slug="a100")
        for number in range(RUNS):
            running.workload(namespace, gpu_class, name=f"job-{number}", kind="job", by=owner)
        self.email, self.password, self.stopped = owner.email, make.PASSWORD, 0
        self.cookies = []
        for number in range(PEOPLE):
            person = make.user(f"Reader{number}")
            make.member(team, person)
            client = Client(headers={"Host": "localhost"})
            client.force_login(person)
            self.cookies.append("; ".join(f"{name}={one.value}" for name, one in client.cookies.items()))
        connections.close_all()

    def asked(self, index: int) -> Asked:
        return Asked(LISTS[index % len(LISTS)], {"Host": "localhost", "Cookie": self.cookies[index % PEOPLE]})

    def next_run(self) -> str:
        self.stopped = (self.stopped + 1) % RUNS
        return f"job-{self.stopped}"


def _round(ground: Ground) -> _Round:
    core = {min(os.sched_getaffinity(0))}
    with served_by_gunicorn(cores=core, **UNLIMITED) as server:
        _person(ground, server, times=1)
        quiet_rate = Pace(server.port, 2).rate(ground.asked, QUIET_REQUESTS)
        quiet = _person(ground, server, times=3)
        with _flood(ground, server, TIMES * quiet_rate) as flood:
            wait_until(
                lambda: flood.statuses[429] + flood.statuses[503] > 0, within_s=FLOOD_S, what="lists are refused"
            )
            flooded = _person(ground, server, until=time.monotonic() + FLOOD_S - 2)
        recovery_s = _recovery_s(ground, server, 1 / quiet_rate)
    assert not flood.wrong, f"answers without words: {flood.wrong}"
    steps = {step: (statistics.median(flooded[step]), statistics.median(quiet[step])) for step in STEPS}
    total = sum(flood.statuses.values())
    return _Round(steps, (flood.statuses[200] / FLOOD_S, quiet_rate), 1 - flood.statuses[200] / total, recovery_s)


def _person(ground: Ground, server: Served, *, times: int = 0, until: float = 0.0) -> dict[str, list[float]]:
    """Milliseconds of each step. Raises AssertionError if one fails."""
    took: dict[str, list[float]] = {step: [] for step in STEPS}

    def timed(step: str, act: Any) -> Any:
        began = time.perf_counter()
        page = act()
        took[step].append((time.perf_counter() - began) * 1000)
        assert page.status == 200, f"{step} was answered with {page.status}: {page.words()[:300]}"
        return page

    while times > 0 or time.monotonic() < until:
        times -= 1
        browser = BrowserSession(f"http://localhost:{server.port}")
        page = timed("sign_in", lambda browser=browser: browser.get("/login"))
        form = page.form(having="password")
        answer = timed(
            "sign_in",
            lambda browser=browser, page=page, form=form: browser.submit(
                page, form, username=ground.email, password=ground.password
            ),
        )
        assert "/login" not in answer.url, answer.words()[:300]
        timed("home", lambda browser=browser: browser.get("/teams/team-0"))
        name = ground.next_run()
        page = timed("stop", lambda browser=browser, name=name: browser.get(f"/teams/team-0/workloads/{name}"))
        stop = page.form(action="/stop")
        timed("stop", lambda browser=browser, page=page, stop=stop: browser.submit(page, stop))
    return took


@dataclass
class _Flood:
    statuses: Counter[int] = field(default_factory=Counter)
    # What is neither a list nor a sentence with a time.
    wrong: list[str] = field(default_factory=list)


@contextmanager
def _flood(ground: Ground, server: Served, a_second: float) -> Iterator[_Flood]:
    """Each connection sends at its times, or at once if it is late."""
    found, ends, lock = _Flood(), time.monotonic() + FLOOD_S, threading.Lock()

    def send(first: int) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
        at, index = time.monotonic() + first / a_second, first
        while (now := time.monotonic()) < ends:
            if at > now:
                time.sleep(at - now)
            at, index = max(at + CONNECTIONS / a_second, now - 0.5), index + CONNECTIONS
            asked = ground.asked(index)
            connection.request("GET", asked.path, headers=dict(asked.headers))
            answer = connection.getresponse()
            body = answer.read().decode(errors="replace")
            is_said = answer.status in (429, 503) and f"Try again in {answer.headers['Retry-After']} s." in body
            with lock:
                found.statuses[answer.status] += 1
                if answer.status != 200 and not is_said:
                    found.wrong.append(f"{asked.path}: {answer.status}")
        connection.close()

    threads = [threading.Thread(target=send, args=(number,)) for number in range(CONNECTIONS)]
    for thread in threads:
        thread.start()
    try:
        yield found
    finally:
        for thread in threads:
            thread.join()


def _recovery_s(ground: Ground, server: Served, quiet_s: float) -> float:
    """From the last answer of the flood until five lists in a row are answered, each in three times the time of a
    quiet process at most.
    """
    began, in_a_row, index = time.monotonic(), 0, 0
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    while in_a_row < 5 and time.monotonic() - began < 60:
        index += 1
        asked, at = ground.asked(index), time.monotonic()
        connection.request("GET", asked.path, headers=dict(asked.headers))
        answer = connection.getresponse()
        answer.read()
        is_well = answer.status == 200 and time.monotonic() - at < max(0.1, 3 * quiet_s)
        in_a_row = in_a_row + 1 if is_well else 0
    connection.close()
    return time.monotonic() - began
