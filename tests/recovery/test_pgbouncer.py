"""PgBouncer lends every transaction any of its sessions: what a process leaves in a session, another one would find."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest

from devcluster.client.kube import Api
from devcluster.demo.http_client import BrowserSession, Page
from devcluster.processes.ports import free_port
from devcluster.services import redis
from portal.core.postgresql.session import SERVER
from tests.recovery import pgbouncer
from tests.recovery.portal import Portal
from tests.recovery.started import Servers, processes, servers
from tests.support.processes.onlooker import Onlooker

pytestmark = [
    pytest.mark.timeout(280),
    pytest.mark.skipif(pgbouncer.PROGRAM is None, reason="pgbouncer is not installed: apt-get install pgbouncer"),
]
THROUGH = ("web", "doors", "worker", "beat")
CLIENTS, ROUNDS = 8, 4


@pytest.fixture(scope="module")
def postgresql(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    with servers(tmp_path_factory.mktemp("pgbouncer")) as found:
        yield found


@pytest.fixture(scope="module")
def urls(postgresql: Servers) -> dict[str, str]:
    port = pgbouncer.start(postgresql)
    through = {process: pgbouncer.url_of(postgresql, process, port=port) for process in THROUGH}
    return through | {"watcher": pgbouncer.url_of(postgresql, "watcher")}


@pytest.fixture(scope="module")
def portal(postgresql: Servers, urls: dict[str, str], services: dict[str, Any], admin: Api) -> Iterator[Portal]:
    command, redis_url = redis.command(postgresql.state, free_port({postgresql.port}))
    postgresql.supervisor.start(command)
    postgresql.supervisor.until_ready("redis")
    with processes(postgresql, redis_url, services=services, admin=admin, urls=urls, tasks=4) as portal:
        yield portal


def told_again(ask: Callable[[], Page]) -> int:
    """All clients are one person, and ask for more lists than a process lets wait: it then says when to return."""
    for _ in range(20):
        page = ask()
        if page.status not in (429, 503) or page.headers.get("retry-after", "") == "":
            return page.status
        threading.Event().wait(int(page.headers["retry-after"]))
    return page.status


def test_everything_at_once_through_two_sessions(portal: Portal, urls: dict[str, str], team: str) -> None:
    portal.provision(team, units=3)
    portal.wait(lambda: portal.is_provisioned(team, 3), what="the team is provisioned")
    people = json.loads(portal.run("-m", "tests.recovery.provision", "people", team))
    line = {
        "kind": "boost",
        "gpu_class": portal.slug,
        "units": 1,
        "ends_at": (datetime.now(UTC) + timedelta(days=30)).isoformat(),
    }
    request = {"team": team, "justification": "Another training.", "lines": [line]}
    job = {"kind": "job", "gpu_class": portal.slug, "units": 1, "image": "python", "command": ["true"]}

    def visit(number: int) -> list[tuple[str, int]]:
        address = f"http://localhost:{web}"
        member, approver = (BrowserSession(address, token=people[who]) for who in ("member", "approver"))
        browser = BrowserSession(address)
        for session in (member, approver, browser):
            open_sessions.callback(session.close)
        browser.cookies = {host: dict(cookies) for host, cookies in signed_in.cookies.items()}
        seen: list[tuple[str, int]] = []
        for turn in range(ROUNDS):
            name = f"job-{number}-{turn}"
            seen.append(("launch", member.api("POST", f"/api/v1/workloads?team={team}", {**job, "name": name}).status))
            # Another client's may be pending: a team asks once for a class.
            filed = member.api("POST", "/api/v1/requests", request)
            if (filed.status, filed.json().get("code")) != (409, "already_pending"):
                assert filed.status == 201, filed.text
                lines = [{"id": one["id"], "approve": True, "reason": "Free."} for one in filed.json()["lines"]]
                decided = approver.api("POST", f"/api/v1/requests/{filed.json()['id']}/decide", {"lines": lines})
                assert decided.status == 200, decided.text
                seen.append(("decide", decided.status))
            seen.append(("home", browser.get(f"/teams/{team}").status))
            seen.append(("lists", told_again(lambda: browser.get(f"/teams/{team}/workloads"))))
            seen.append(("api", told_again(lambda: member.api("GET", f"/api/v1/workloads?team={team}"))))
        return seen

    # Two processes of web with eight connections each, and as many streams as clients.
    pool = {"DATABASE_POOL": "true"}
    with (
        portal.web(DATABASE_URL=urls["web"], **pool) as web,
        portal.doors(DATABASE_URL=urls["doors"], **pool) as doors,
        ExitStack() as open_sessions,
        ExitStack() as streams,
        ThreadPoolExecutor(CLIENTS) as clients,
    ):
        signed_in = BrowserSession(f"http://localhost:{web}")
        open_sessions.callback(signed_in.close)
        login = signed_in.get("/login")
        typed = {"username": people["email"], "password": people["password"]}
        assert signed_in.submit(login, login.form(having="password"), **typed).status == 200
        headers = {"Authorization": f"Bearer {people['member']}"}
        viewers = [streams.enter_context(Onlooker(doors, f"/live/{team}", headers)) for _ in range(CLIENTS)]
        seen = [one for found in clients.map(visit, range(CLIENTS)) for one in found]
        refused = [one for one in seen if one[1] not in (200, 201, 202)]
        assert refused == []
        jobs = {f"job-{number}-{turn}-1" for number in range(CLIENTS) for turn in range(ROUNDS)}
        portal.wait(lambda: jobs <= jobs_of(portal, team), what="a worker made every job")
        assert [one for one in seen if one[0] == "decide"]
        snapshot = viewers[0].ask(f"/api/v1/teams/{team}/live?wait=0")
        assert snapshot is not None
        granted = snapshot["holdings"][0]["granted"]
        assert granted > 3
        portal.wait(lambda: portal.is_provisioned(team, granted), what="the queue has what was approved")
        portal.wait(portal.is_settled, what="no row is due or on lease")
        last = f"job-{CLIENTS - 1}-{ROUNDS - 1}"
        portal.wait(lambda: all(last in shown(viewer) for viewer in viewers), what="every stream shows it")

        for process in THROUGH:
            user = str(urlsplit(urls[process]).username)
            count = portal.ask("SELECT count(*) FROM pg_stat_activity WHERE usename = %s", user)
            # Beat only sends.
            assert process == "beat" or 0 < count <= pgbouncer.SESSIONS
            assert_nothing_was_left_in(urls[process], user)
        for process in THROUGH:
            log = portal.supervisor.running[process].log.read_text()
            assert not [word for word in ("prepared statement", "Traceback", "cursor") if word in log], log


def shown(viewer: Onlooker) -> str:
    return " ".join(one.text for one in viewer.sights)


def jobs_of(portal: Portal, team: str) -> set[str]:
    return {one["metadata"]["name"] for one in portal.admin.list("batch/v1/jobs", namespace=team)}


def assert_nothing_was_left_in(url: str, user: str) -> None:
    """Looks at all sessions of the user: as many transactions as there are, at the same time."""
    plain = urlsplit(url)._replace(query="").geturl()
    with ExitStack() as held:
        sessions = [
            held.enter_context(psycopg.connect(plain, prepare_threshold=None)) for _ in range(pgbouncer.SESSIONS)
        ]
        pids = [value(one, "SELECT pg_backend_pid()") for one in sessions]
        assert len({*pids}) == pgbouncer.SESSIONS
        for one in sessions:
            for name in SERVER:
                assert value(one, f"SELECT source FROM pg_settings WHERE name = '{name}'") == "user", name
            assert value(one, "SELECT current_setting('statement_timeout')") == SERVER["statement_timeout"]
            assert value(one, "SELECT current_setting('application_name')") == ""
            assert value(one, "SELECT current_user::text || session_user") == user + user
            for what in ("pg_prepared_statements", "pg_cursors"):
                assert value(one, f"SELECT count(*) FROM {what}") == 0
            assert (
                value(one, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()") == 0
            )
            own = "source IN ('session', 'client') AND name <> ALL (%s)"
            left = one.execute(f"SELECT name, setting FROM pg_settings WHERE {own}", [POOLED]).fetchall()
            assert left == []


# Those that PgBouncer itself sets for each client.
POOLED = ["application_name", "client_encoding", "DateStyle", "TimeZone", "standard_conforming_strings"]


def value(session: psycopg.Connection[Any], statement: str) -> Any:
    row = session.execute(statement).fetchone()
    assert row is not None
    return row[0]


@pytest.mark.parametrize("command", ["migrate", "watch_cluster"])
def test_what_needs_a_session_says_so(
    portal: Portal, urls: dict[str, str], services: dict[str, Any], command: str
) -> None:
    """Two watchers in one session would both have the lock."""
    env = {"DATABASE_URL": urls["worker"], "PORTAL_KUBECONFIG": services["kubeconfigs"]["watcher"]}
    assert "has to name PostgreSQL itself, not a pooler" in portal.run("manage.py", command, exits=1, **env)
