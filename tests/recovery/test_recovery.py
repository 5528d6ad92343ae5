"""Whatever goes away in the middle of a provisioning, the end state is the same, without help."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from devcluster.faults import WRITES
from tests.recovery.conftest import Portal

pytestmark = pytest.mark.timeout(240)


def provision_during(portal: Portal, name: str, disaster: Callable[[], object]) -> None:
    """The disaster happens when the fourth write for the team has reached the API server and before anybody knows.

    In this thread: a process started by the proxy's would get its parent-death signal when that thread ends.
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


@pytest.fixture
def team(portal: Portal, unique: str) -> str:
    """A name whose objects the portal's own eight characters remove at the end."""
    return f"team-{unique}-{portal.slug.rpartition('-')[2]}"


def test_redis_flushed(portal: Portal, team: str) -> None:
    provision_during(portal, team, portal.flush_redis)
    assert_same_end_state(portal, team)


def test_worker_killed(portal: Portal, team: str) -> None:
    provision_during(portal, team, lambda: portal.kill("worker"))
    assert_same_end_state(portal, team)


def test_watcher_killed(portal: Portal, team: str) -> None:
    provision_during(portal, team, lambda: portal.kill("watcher"))
    assert_same_end_state(portal, team)


def test_postgres_crashed_and_the_mirror_emptied(portal: Portal, team: str) -> None:
    before = portal.ask("SELECT max(epoch) FROM cluster_mirrorepoch")
    provision_during(portal, team, portal.crash_postgres)
    assert_same_end_state(portal, team)
    assert portal.ask("SELECT max(epoch) FROM cluster_mirrorepoch") != before


def test_api_server_away(portal: Portal, team: str) -> None:
    provision_during(portal, team, portal.proxy.refuse)
    portal.wait(
        lambda: portal.ask("SELECT count(*) FROM tenants_namespace WHERE error_code = 'cluster_unavailable'") == 1,
        what="the row says that the cluster does not answer",
    )
    portal.proxy.resume()
    assert_same_end_state(portal, team)


def test_an_object_deleted_behind_our_back_comes_back(portal: Portal, team: str) -> None:
    portal.provision(team, units=3)
    assert_same_end_state(portal, team)
    before = portal.admin.get("v1/resourcequotas", "gpu-portal", namespace=team)["metadata"]["uid"]
    portal.admin.delete("v1/resourcequotas", "gpu-portal", namespace=team)

    def is_back() -> bool:
        found = portal.admin.find("v1/resourcequotas", "gpu-portal", namespace=team)
        return found is not None and found["metadata"]["uid"] != before

    portal.wait(is_back, what="the quota is there again", within_s=60)
