"""An upgrade from an earlier release to this one and the rollback, under 50 requests per second and 200 open streams.

Takes about two minutes. UPGRADE_FROM: a revision of this repository; by default the newest tag.
No request fails, no stream is opened more than once more for each replaced process of doors, and no pod of a run ends.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from devcluster.client.kube import Api
from devcluster.demo.http_client import BrowserSession
from devcluster.processes import ports
from devcluster.processes.paths import ROOT
from devcluster.processes.supervisor import Supervisor
from devcluster.services import postgres
from devcluster.services.portal import Portal
from tests.e2e.journeys.test_thin_path import drop_database
from tests.load.upgrade.releases import ROLES, Rollout, last_release, pods_of, release
from tests.load.upgrade.traffic import Call, Traffic, json_call
from tests.support.waiting import wait_until

pytestmark = pytest.mark.timeout(1800)
PER_S = 50.0
STREAMS = 200
# Of each of the five people: nobody opens ten pages a second in one browser.
BROWSERS = 4


@pytest.fixture
def rollout(services: dict[str, Any], tmp_path: Path) -> Iterator[Rollout]:
    name = f"upgrade_{os.getpid()}"
    own = {
        **services,
        "database_url": postgres.ensure_database(services["database_url"], name),
        "has_logins": True,
        "redis_url": urlsplit(services["redis_url"])._replace(path="/0").geturl(),
    }
    with Supervisor(tmp_path / "log") as supervisor:
        portal = Portal(tmp_path, own, ports.assign_ports(tmp_path), Path(services["bin_dir"]) / "caddy")
        yield Rollout(supervisor, portal)
    drop_database(services["database_url"], name)


def test_upgrade_and_rollback(rollout: Rollout, admin: Api, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    revision = os.environ.get("UPGRADE_FROM") or last_release()
    traffic = Traffic(rollout.portal.ports["gateway"], urlsplit(rollout.portal.url).netloc, PER_S)
    with release(revision, tmp_path) as earlier, traffic.running(rollout.web, rollout.doors):
        rollout.seed(earlier, "people")
        for role in ROLES:
            rollout.roll(role, earlier)
        rollout.start_gateway()
        rollout.seed(earlier, "catalog")
        people = [one for one in json.loads((tmp_path / "accounts.json").read_text()) if one["tenant"]]
        before = settled(admin)
        calls, streams = asked(rollout, people)
        traffic.begin(calls, streams)
        wait_until(lambda: traffic.open_streams == len(traffic.streams), within_s=60, story=traffic.story)

        steps = [("upgrade", ROOT), ("rollback", earlier)]
        told = []
        for what, tree in steps:
            if what == "upgrade":
                rollout.manage(tree, "migrate", "--noinput")
                rollout.manage(tree, "database_roles", *rollout.portal.write_logins())
            for role in ROLES:
                rollout.roll(role, tree)
            wait_until(lambda: traffic.open_streams == len(traffic.streams), within_s=60, story=traffic.story)
            told.append(f"{what}: {traffic.story()}")
            assert max(traffic.reconnects) <= len(told), "one more connection of a stream for each process of doors"
        after = pods_of(admin.list("v1/pods"))
    with capsys.disabled():
        print(f"\nfrom {revision}", *told, sep="\n")
    assert traffic.failures == []
    assert before.items() <= after.items(), "no pod of a run ended"


def settled(admin: Api) -> dict[str, str]:
    """The running pods, as soon as they are the same ones for five seconds."""
    seen: list[dict[str, str]] = []

    def is_settled() -> bool:
        seen.append(pods_of(admin.list("v1/pods")))
        return bool(seen[-1]) and len(seen) > 5 and all(one == seen[-1] for one in seen[-6:])

    wait_until(is_settled, within_s=120, every_s=1, story=lambda: str(seen[-1]))
    return seen[-1]


def asked(rollout: Rollout, accounts: Sequence[dict[str, Any]]) -> tuple[list[Call], list[Call]]:
    """Of several people with several browsers each, because of the limits of each: pages, calls of the API that read
    and one that writes; and streams.
    """
    calls: list[Call] = []
    streams: list[Call] = []
    for one in [one for _ in range(BROWSERS) for one in accounts]:
        person = BrowserSession(rollout.portal.url)
        page = person.get("/login")
        person.submit(page, page.form(having="password"), username=one["email"], password=one["password"])
        cookie = ("Cookie", person.cookie_header(urlsplit(rollout.portal.url).netloc))
        token = ("Authorization", f"Bearer {one['token']}")
        team = f"/teams/{one['tenant']}"
        pages = [f"{team}/{part}" for part in ("workloads", "grants", "launch", "usage", "history")]
        calls += [Call(path, (cookie,)) for path in [*pages, "/catalog"]]
        calls += [Call(f"/api/v1/{part}", (token,)) for part in ("classes", "workloads", "me")]
        wanted = {"approved": "page"}
        calls.append(json_call("PUT", "/api/v1/me/notices/preferences", wanted, one["token"], 200))
        listening = Call(f"/live/{one['tenant']}", (cookie, ("Accept", "text/event-stream")))
        streams += [listening] * -(-STREAMS // (BROWSERS * len(accounts)))
    return calls, streams
