"""Redis Sentinel: every client of the portal follows the primary. Without one pages go on, since rows are truth."""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from typing import Any

import pytest
import redis

from devcluster.client.kube import Api
from tests.recovery.portal import Portal
from tests.recovery.sentinels import SentinelSet
from tests.recovery.started import Servers, processes, servers
from tests.support.processes.onlooker import Onlooker

pytestmark = pytest.mark.timeout(280)


@pytest.fixture(scope="module")
def postgresql(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    with servers(tmp_path_factory.mktemp("sentinel")) as found:
        yield found


@pytest.fixture(scope="module")
def redis_servers(postgresql: Servers) -> SentinelSet:
    return SentinelSet.start(postgresql.supervisor, postgresql.state)


@pytest.fixture(scope="module")
def portal(postgresql: Servers, redis_servers: SentinelSet, services: dict[str, Any], admin: Api) -> Iterator[Portal]:
    with processes(postgresql, redis_servers.url, services=services, admin=admin) as portal:
        yield portal


def get(port: int, path: str, headers: dict[str, str]) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        connection.request("GET", path, headers=headers)
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


def test_the_primary_is_killed_and_then_the_other(portal: Portal, redis_servers: SentinelSet, team: str) -> None:
    beat = portal.supervisor.running["beat"].command
    portal.provision(team, units=3)
    portal.wait(lambda: portal.is_provisioned(team, 3), what="the team is provisioned")
    portal.wait(portal.is_settled, what="no row is due or on lease")
    headers = {"Authorization": f"Bearer {portal.run('-m', 'tests.recovery.provision', 'viewer', team)}"}

    def assert_pages_go_on(words: str) -> None:
        assert get(web, f"/api/v1/teams/{team}", headers)[0] == 200
        assert viewer.ask(f"/api/v1/teams/{team}/live?wait=0") is not None
        status, text = get(web, "/readyz", {})
        assert (status, text.split("\n")[0]) == (200, "ready")
        assert words in text

    with portal.web() as web, portal.doors() as doors, Onlooker(doors, f"/live/{team}", headers) as viewer:
        portal.wait(lambda: viewer.latest("state_holdings") is not None, what="the page is there")
        portal.wait(lambda: subscriptions(redis_servers.server(redis_servers.primary())) > 0, what="doors listens")
        assert get(web, "/readyz", {}) == (200, "ready\n")

        other = redis_servers.kill_primary()
        # Nobody has noticed yet: what is asked now is answered nevertheless.
        assert_pages_go_on("Redis")
        later = f"later-{team}"
        portal.provision(later, units=2)
        portal.wait(lambda: redis_servers.primary() == other, what="there is another primary")
        primary = redis_servers.server(other)
        portal.wait(lambda: subscriptions(primary) > 0, what="doors listens to it")
        portal.wait(lambda: portal.is_provisioned(later, 2), what="workers are told by it")
        portal.wait(lambda: publishes(primary) > 0, what="the watcher tells pages by it")
        assert get(web, "/readyz", {}) == (200, "ready\n")

        # Without the sweep only the hint of web tells a worker.
        portal.supervisor.stop("beat")
        by_hint = f"hint-{team}"
        portal.provision(by_hint, units=1)
        portal.wait(lambda: portal.is_provisioned(by_hint, 1), what="a hint reaches a worker")
        portal.supervisor.start(beat)

        last = redis_servers.supervisor.running[redis_servers.servers[other]].command
        redis_servers.kill_primary()
        portal.wait(lambda: "no primary" in get(web, "/readyz", {})[1], what="the sentinels name none")
        assert_pages_go_on("Redis has no primary")
        assert "Redis" in portal.run("manage.py", "doctor", exits=1)
        without = f"without-{team}"
        portal.provision(without, units=1)
        redis_servers.supervisor.start(last)
        portal.wait(lambda: portal.is_provisioned(without, 1), what="what was decided meanwhile is done")
        portal.wait(lambda: get(web, "/readyz", {}) == (200, "ready\n"), what="web found the primary")
        assert_pages_go_on("")


def subscriptions(server: redis.Redis) -> int:
    return int(server.pubsub_numpat())


def publishes(server: redis.Redis) -> int:
    return int(server.info("commandstats").get("cmdstat_publish", {"calls": 0})["calls"])
