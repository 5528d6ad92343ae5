"""How often the calls that CI makes ask the database: the same with few teams and with many. Times: `bench api`."""

from __future__ import annotations

import pytest

from tests.perf._api_ground import Ground
from tests.perf._recorded import recorded

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_call_asks_as_often_with_many_teams_as_with_few() -> None:
    ground = Ground()
    counts = []
    for teams in (2, 60):
        ground.fill(teams)
        counts.append({name: len(recorded(asked).statements) for name, asked in ground.calls.items()})
    # PUT: with its BEGIN and COMMIT, and the one workload that it answers with.
    assert counts == 2 * [{"list": 12, "get": 11, "put": 13}]


def test_what_is_recorded_is_replayed_as_it_was() -> None:
    """Transactions around what was in them, and parameters that need no model."""
    put = recorded(Ground().calls["put"])
    words = [statement.split()[0] for statement, _parameters in put.statements]
    assert words[:3] == ["SELECT", "BEGIN", "SELECT"]
    assert words.count("BEGIN") == words.count("COMMIT") == 1
    assert put.status == "200 OK"
    assert b'"needs_run": true' in put.body or b'"needs_run":true' in put.body
