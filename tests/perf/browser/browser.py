"""What a person's browser does: first visits, clicks and long lists, through web, doors and the gateway.

Requests, bytes and shifts do not depend on the machine; times do, and are only valid on a machine that does nothing
else. The peer of a click is a button alone on a page that changes its own text: what the browser needs for a frame.
Needs Chromium: PORTAL_TEST_BROWSER, or one in the PATH.
"""

from __future__ import annotations

import os
import shutil
import statistics
from collections.abc import Iterator
from typing import Any

from playwright.sync_api import sync_playwright

from devcluster.cli.bench import Bar, Context, Figure, benchmark
from devcluster.cli.testing import BROWSER_VARIABLE, BROWSERS
from devcluster.processes.console import UserError, note
from tests.perf.browser.clicks import Click, answered_ms, bare_ms, clicks
from tests.perf.servers.database import own_database
from tests.perf.servers.gateway import portal_behind_gateway
from tests.support.browser.limits import BYTES, FEEDBACK_MS, LONG_TASK_MS, REQUESTS, SHIFT
from tests.support.browser.pages import PAGES
from tests.support.browser.visit import Visitor, moved, settle, shift_of

ROUNDS = 6
CLICKS = 10
# Each is decided once.
PENDING = 2 * ROUNDS * CLICKS
WHEEL = 400
STEPS = 40
LONGER = """() => { const body = document.querySelector("main tbody"), rows = [...body.rows];
  while (body.rows.length < 500) rows.forEach((row) => body.append(row.cloneNode(true))); }"""
EMPTY = """() => { document.querySelector("main").replaceChildren(); document.body.style.height = "30000px"; }"""
FRAMES = """(steps) => new Promise((done) => {
  const gaps = []; let last = performance.now(); probe.longTasks.length = 0;
  const next = (now) => { gaps.push(now - last); last = now; scrollBy(0, steps[0]);
    if (gaps.length < steps[1]) requestAnimationFrame(next); else setTimeout(() => done(gaps), 100); };
  requestAnimationFrame(next);
})"""


@benchmark("browser", "requests, bytes, shifts, clicks and long lists in a real browser", cluster=False)
def browser(context: Context) -> Iterator[Figure]:
    services = context.services
    program = os.environ.get(BROWSER_VARIABLE) or next(filter(None, map(shutil.which, BROWSERS)), "")
    if not program:
        raise UserError("No Chromium found.", "Install it: apt-get install chromium-headless-shell")
    with own_database("browser", database_url=services["database_url"], redis_url=services["redis_url"]):
        cookies = _rows()
        # Playwright keeps a loop in this thread, which Django takes for asynchronous code.
        os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
        with portal_behind_gateway() as url, sync_playwright() as playwright:
            chromium = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
            yield from _figures(chromium, url, cookies)
            chromium.close()


def _figures(chromium: Any, url: str, cookies: dict[str, str]) -> Iterator[Figure]:
    from django.conf import settings

    visitor = Visitor(chromium, url, settings.SESSION_COOKIE_NAME)
    for name, (path, who) in PAGES.items():
        yield from _first_visits(visitor, name, path, cookies[who])
    for click in clicks():
        yield from _clicks(visitor, click, cookies[click.who])
    yield from _scrolls(visitor, cookies["alice"])


def _first_visits(visitor: Visitor, name: str, path: str, cookie: str) -> Iterator[Figure]:
    found = []
    for _ in range(ROUNDS):
        _beat()
        with visitor.first_visit(path, cookie) as (page, traffic):
            found.append((traffic.requests, traffic.total_bytes, shift_of(page), traffic.stream_bytes))
            if found[-1][2] > SHIFT:
                note(f"{name}: {moved(page)}")
    if any(one[3] for one in found):
        # The state as it is, which a stream begins with, is not compressed.
        yield Figure(f"{name}_stream_bytes", "bytes", "the page", [(one[3], one[1]) for one in found])
    bars = (("requests", "requests", REQUESTS), ("bytes", "bytes", BYTES), ("shift", "score", SHIFT))
    for at, (what, unit, limit) in enumerate(bars):
        yield Figure(f"{name}_{what}", unit, "the limit", [(one[at], limit) for one in found], Bar("ours", limit))


def _clicks(visitor: Visitor, click: Click, cookie: str) -> Iterator[Figure]:
    rounds = []
    for _ in range(ROUNDS):
        _beat()
        # One page at a time: a browser draws one that is behind another once a second.
        with visitor.page(cookie) as page:
            ours = [answered_ms(page, click) for _ in range(CLICKS)]
        with visitor.page("") as page:
            rounds.append((ours, bare_ms(page, CLICKS)))
    for what, of, bar in (("p50", statistics.median, None), ("p95", _p95, Bar("ours", FEEDBACK_MS))):
        pairs = [(of(ours), of(peer)) for ours, peer in rounds]
        yield Figure(f"click_{click.name}_{what}", "ms", "a button alone on a page", pairs, bar)


def _scrolls(visitor: Visitor, cookie: str) -> Iterator[Figure]:
    """The list of workloads with ten times the rows of a page, which has 50. The peer scrolls an empty page."""
    frames, tasks = [], []
    for _ in range(ROUNDS):
        found = []
        with visitor.page(cookie) as page:
            for empty in (False, True):
                page.goto(PAGES["workloads"][0])
                settle(page)
                page.evaluate(EMPTY if empty else LONGER)
                gaps = page.evaluate(FRAMES, [WHEEL, STEPS])
                long = sum(one > LONG_TASK_MS for one in page.evaluate("probe.longTasks"))
                found.append((_p95(gaps), float(long)))
        frames.append((found[0][0], found[1][0]))
        tasks.append((found[0][1], found[1][1]))
    yield Figure("scroll_frame_p95", "ms", "an empty page", frames)
    yield Figure("scroll_long_tasks", f"over {LONG_TASK_MS} ms", "an empty page", tasks, Bar("ours", 0))


def _p95(values: list[float]) -> float:
    return statistics.quantiles(values, n=20, method="inclusive")[18]


def _rows() -> dict[str, str]:
    """Returns the session cookies of those who look."""
    from django.conf import settings
    from django.test import Client

    from cluster.models import Cluster
    from tests.support.browser.busy_team import busy_team

    cluster = Cluster.objects.create(name="main", notebooks_domain="notebooks.localhost", cohort="gpu-portal-bench")
    busy = busy_team(cluster, pending=PENDING)
    found = {}
    for name in ("alice", "dana", "olga"):
        client = Client(headers={"Host": "localhost"})
        client.force_login(getattr(busy, name))
        found[name] = client.cookies[settings.SESSION_COOKIE_NAME].value
    return found


def _beat() -> None:
    """Sends the watcher's heartbeat, so that the data counts as current."""
    from django.db.models.functions import Now

    from cluster.models import MirrorEpoch, MirrorKind

    MirrorEpoch.objects.update(beat_at=Now())
    MirrorKind.objects.update(heard_at=Now())
