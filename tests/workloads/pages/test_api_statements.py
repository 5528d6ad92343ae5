"""The number of SQL statements of the calls that CI makes: equal with few and with many teams. Times: `bench api`."""

from __future__ import annotations

import pytest
from django.utils import timezone

from accounts.core.actor import Actor, system_actor
from accounts.models import User
from catalog.models import GpuClass
from tenants.models import Namespace, Tenant
from tests.perf.support.api_ground import Ground
from tests.perf.support.recorded_calls import recorded
from tests.support.rows import running
from workloads.core import queries
from workloads.models import Workload

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_call_asks_as_often_with_many_teams_as_with_few() -> None:
    ground = Ground()
    counts = []
    for teams in (2, 60):
        ground.fill(teams)
        counts.append({name: len(recorded(asked).statements) for name, asked in ground.calls.items()})
    # PUT: including BEGIN and COMMIT, and the one workload that it returns.
    assert counts == 2 * [{"list": 11, "get": 11, "put": 13}]


def test_what_is_recorded_is_replayed_as_it_was() -> None:
    """The transactions enclose the same statements, and the parameters need no model."""
    put = recorded(Ground().calls["put"])
    words = [statement.split()[0] for statement, _parameters in put.statements]
    assert words[:3] == ["SELECT", "BEGIN", "SELECT"]
    assert words.count("BEGIN") == words.count("COMMIT") == 1
    assert put.status == "200 OK"
    assert b'"needs_run": true' in put.body or b'"needs_run":true' in put.body


def test_the_short_way_to_a_list_shows_what_the_long_one_does(
    team_a: Tenant, namespace_a: Namespace, a100: GpuClass, alice: User, charlie: User, olga: User
) -> None:
    """Compared for members, strangers, operators, tokens of this team and of another one, and the portal itself."""
    for name in ("one", "two", "gone", "three"):
        running.workload(namespace_a, a100, name=name, by=alice)
    Workload.objects.filter(name="gone").update(deleted_at=timezone.now())
    actors = [
        Actor(user, via="api", confined_to=team) for user in (alice, charlie, olga) for team in ("", "team-a", "b")
    ]
    for by in [*actors, system_actor("rule")]:
        found = [one.pk for one in queries.newest_workloads(by, "team-a", None, 9)]
        assert found == list(queries.visible_workloads(by, "team-a").order_by("-pk").values_list("pk", flat=True)), by
        assert queries.newest_workloads(by, "team-a", (found or [0])[-1], 9) == []
        assert [one.pk for one in queries.newest_workloads(by, "team-a", None, 1)] == found[:1]
