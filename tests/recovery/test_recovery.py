"""Whichever service fails during a provisioning, the end state is the same, without manual help.

tests/soak/recovery.py has the other faults: those that tests of the watcher, of drift and of lost hints also cover.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from devcluster.faults.rules import WRITES
from tests.recovery.portal import Portal
from tests.support.processes.onlooker import Onlooker, Versions

pytestmark = pytest.mark.timeout(240)


def provision_during(portal: Portal, name: str, disaster: Callable[[], object]) -> None:
    """The fault happens when the fourth write for the team has reached the API server and is not yet answered.

    It runs in this thread: a process that the proxy's thread starts gets its parent-death signal when that thread ends.
    """
    reached, is_over = threading.Event(), threading.Event()

    def hold() -> None:
        reached.set()
        is_over.wait(60)

    portal.proxy.when(WRITES, nth=4).call_after(hold)
    portal.provision(name, units=3)
    try:
        assert reached.wait(60), portal.story()
        disaster()
    finally:
        is_over.set()


def assert_same_end_state(portal: Portal, name: str) -> None:
    portal.wait(lambda: portal.is_provisioned(name, 3), what=f"{name} is provisioned")
    portal.wait(portal.is_settled, what="no row is due or on lease")
    portal.wait(lambda: portal.is_mirrored(name), what=f"the mirror knows {name}")


def test_worker_killed(portal: Portal, team: str) -> None:
    provision_during(portal, team, lambda: portal.kill("worker"))
    assert_same_end_state(portal, team)


def test_postgres_crashed_and_the_mirror_emptied(portal: Portal, team: str) -> None:
    before = portal.ask("SELECT max(epoch) FROM cluster_mirrorepoch")
    provision_during(portal, team, portal.crash_postgres)
    assert_same_end_state(portal, team)
    assert portal.ask("SELECT max(epoch) FROM cluster_mirrorepoch") != before


def test_postgres_crashed_in_front_of_somebody(portal: Portal, team: str) -> None:
    """While PostgreSQL recovers, the viewer sees that nothing is known, no wrong figure, and then the right figures."""
    portal.provision(team, units=3)
    assert_same_end_state(portal, team)
    headers = {"Authorization": f"Bearer {portal.run('-m', 'tests.recovery.provision', 'viewer', team)}"}
    versions = Versions()

    def snapshot() -> dict[str, Any] | None:
        found = viewer.ask(f"/api/v1/teams/{team}/live?wait=0")
        if found is not None:
            versions.note(found)
        return found

    def used() -> list[int | None] | None:
        found = snapshot()
        return None if found is None or found["is_stale"] else [one["used"] for one in found["holdings"]]

    def is_right() -> bool:
        shown = viewer.latest("state_holdings")
        return used() == [0] and shown is not None and not viewer.says_stale("state_summary") and shown.text == right

    with portal.doors() as port, Onlooker(port, f"/live/{team}", headers) as viewer:
        portal.wait(lambda: used() == [0] and viewer.latest("state_holdings") is not None, what="the page is there")
        shown = viewer.latest("state_holdings")
        assert shown is not None
        right = shown.text

        watcher = portal.supervisor.running["watcher"].command
        portal.supervisor.stop("watcher")
        portal.crash_postgres()
        portal.wait(lambda: viewer.says_stale("state_summary"), what="the page says that nothing is known")
        unknown = viewer.latest("state_holdings")
        found = snapshot()
        assert unknown is not None
        assert found is not None
        assert (found["as_of"], {*found["versions"].values()}) == (None, {None})
        assert [(one["granted"], one["used"]) for one in found["holdings"]] == [(3, None)]

        portal.supervisor.start(watcher)
        portal.wait(is_right, what="the page is right again", within_s=60)
        assert {one.text for one in viewer.sights if one.event == "state_holdings"} == {right, unknown.text}


def test_api_server_away(portal: Portal, team: str) -> None:
    provision_during(portal, team, portal.proxy.refuse)
    portal.wait(
        lambda: portal.ask("SELECT count(*) FROM tenants_namespace WHERE error_code = 'cluster_unavailable'") == 1,
        what="the row says that the cluster does not answer",
    )
    portal.proxy.resume()
    assert_same_end_state(portal, team)
