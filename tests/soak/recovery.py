"""The faults that tests/recovery/test_recovery.py leaves out, because tests of single folders also cover them."""

from __future__ import annotations

import pytest

from tests.recovery.conftest import portal, team
from tests.recovery.portal import Portal
from tests.recovery.test_recovery import assert_same_end_state, provision_during

__all__ = ["portal", "team"]
pytestmark = pytest.mark.timeout(240)


def test_redis_flushed(portal: Portal, team: str) -> None:
    provision_during(portal, team, portal.flush_redis)
    assert_same_end_state(portal, team)


def test_watcher_killed(portal: Portal, team: str) -> None:
    provision_during(portal, team, lambda: portal.kill("watcher"))
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
