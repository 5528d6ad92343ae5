"""How long it takes until everything is right again after a fault, with the intervals of production.

The fault happens in the middle of a provisioning. Right: an independent client sees each object of the team, no row is
due, leased or in error, and the mirror knows the team. The time runs from the fault, or from its end for an API server
that was away. Each fault happens several times; the median is compared with its limit.
"""

from __future__ import annotations

import os
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from devcluster.client.kube import Api
from devcluster.faults.vanishing_host import NoNamespaces, VanishingHost
from tests.recovery.portal import Portal
from tests.recovery.started import whole_portal
from tests.recovery.test_recovery import provision_during
from tests.recovery.test_vanished import HERE, LEADER, moved, said

TIMES = 5
AWAY_S = 60.0
WITHIN_S = 120.0
UNITS = 3
pytestmark = pytest.mark.timeout(1800)


@pytest.fixture(scope="module")
def portal(services: dict[str, Any], admin: Api, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Portal]:
    state = tmp_path_factory.mktemp("recovery-times")
    with whole_portal(state, services=services, admin=admin, settings="portal.settings") as portal:
        yield portal


def team(portal: Portal, what: str, number: int) -> str:
    """With the portal's own eight characters, so that its objects are removed at the end."""
    return f"{what}-{number}-{portal.slug.rpartition('-')[2]}"


def until_right(portal: Portal, name: str) -> float:
    """Seconds from now."""
    began = time.monotonic()
    portal.wait(
        lambda: portal.is_provisioned(name, UNITS) and portal.is_settled() and portal.is_mirrored(name),
        what=f"{name} is right",
        within_s=WITHIN_S,
    )
    return time.monotonic() - began


def worker_killed(portal: Portal, name: str) -> float:
    provision_during(portal, name, lambda: portal.kill("worker"))
    return until_right(portal, name)


def redis_flushed(portal: Portal, name: str) -> float:
    provision_during(portal, name, portal.flush_redis)
    return until_right(portal, name)


def postgresql_crashed(portal: Portal, name: str) -> float:
    began = time.monotonic()

    def crash() -> None:
        nonlocal began
        began = time.monotonic()
        portal.crash_postgres()

    provision_during(portal, name, crash)
    before = time.monotonic() - began
    return before + until_right(portal, name)


def api_server_away(portal: Portal, name: str) -> float:
    provision_during(portal, name, portal.proxy.refuse)
    threading.Event().wait(AWAY_S)
    portal.proxy.resume()
    return until_right(portal, name)


def watcher_host_gone(portal: Portal, name: str) -> float:
    try:
        with VanishingHost(os.getpid() % 64) as host:
            standby = portal.supervisor.running["watcher"].command
            with moved(portal, host, "watcher"):
                portal.wait(lambda: portal.ask(LEADER) not in (None, HERE), what="the watcher on the host leads")
                portal.supervisor.start(standby)
                portal.wait(lambda: said(portal, "watcher", "watcher_waits"), what="the other one waits")
                host.vanish()
                began = time.monotonic()
                portal.provision(name, units=UNITS)
                before = time.monotonic() - began
                return before + until_right(portal, name)
    except NoNamespaces as reason:
        pytest.skip(str(reason))


@pytest.mark.parametrize(
    ("fault", "limit_s"),
    [
        (worker_killed, 20.0),
        (redis_flushed, 30.0),
        (postgresql_crashed, 20.0),
        (api_server_away, 30.0),
        (watcher_host_gone, 30.0),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_it_is_right_again_in_time(
    portal: Portal, fault: Callable[[Portal, str], float], limit_s: float, capsys: pytest.CaptureFixture[str]
) -> None:
    what = fault.__name__.replace("_", "-")
    took = [fault(portal, team(portal, what, number)) for number in range(TIMES)]
    with capsys.disabled():
        print(
            f"\n{what}: right again after {statistics.median(took):.1f} s"
            f" ({min(took):.1f} to {max(took):.1f} in {TIMES} times; limit {limit_s:.0f} s)"
        )
    assert statistics.median(took) <= limit_s
