"""/api/v1/inbox: returns the groups of the inbox page to scripts of approvers."""

from __future__ import annotations

from django.db import connection
from django.test.utils import CaptureQueriesContext

from accounts.models import User
from catalog.models import GpuClass
from cluster.models import Cluster
from tenants.models import Tenant
from tests.desk.inbox.test_inbox import limited
from tests.support.http.callers import CatalogCaller
from tests.support.rows import make
from tests.support.rows.inbox import many, team, waits

__all__ = ["limited"]


def test_an_approver_reads_group_and_reasons(
    team_a: Tenant, cluster: Cluster, limited: GpuClass, alice: User, charlie: User, dana: User
) -> None:
    make.grant(team_a, limited, units=4)
    clear = waits(team_a, limited, alice, units=2)
    too_much = waits(team(cluster, "one"), limited, charlie, units=9)
    calls = CatalogCaller(dana)
    items = calls.items("/inbox")
    assert [(one["id"], one["group"]) for one in items] == [(clear.pk, "one_click"), (too_much.pk, "conflict")]
    assert items[0]["reasons"] == [
        f"{limited.name}: reduces the total from 4 to 2.",
        "Within the allocation limit at all times.",
        "Dry run accepted: 1 object would change.",
    ]
    assert "allocation limit of 8 by 5" in items[1]["reasons"][0]
    assert "no current total" in items[1]["reasons"][1]
    assert (items[0]["team"], items[0]["lines"][0]["asked_units"]) == ("team-a", 2)
    assert [one["id"] for one in calls.items("/inbox?group=conflict")] == [too_much.pk]
    assert [one["id"] for one in calls.items("/inbox?team=team-a")] == [clear.pk]
    make.gpu_class(cluster, slug="other")
    assert calls.items("/inbox?gpu_class=other") == []


def test_it_is_for_approvers_and_of_their_classes(cluster: Cluster, limited: GpuClass, alice: User, bob: User) -> None:
    other = make.gpu_class(cluster, slug="other", promise_limit=9)
    erin = make.approver("Erin", gpu_class=other)
    waits(team(cluster, "one"), limited, alice, units=1)
    assert CatalogCaller(bob)("/inbox").status_code == 403
    calls = CatalogCaller(erin)
    assert calls.items("/inbox") == []
    refused = calls("/inbox?group=two_clicks")
    assert (refused.status_code, refused.json()["code"]) == (422, "unknown_group")


def test_it_costs_the_same_for_many_and_goes_on_by_a_cursor(
    cluster: Cluster, limited: GpuClass, charlie: User, dana: User
) -> None:
    calls = CatalogCaller(dana)

    def cost(number: int) -> int:
        with CaptureQueriesContext(connection) as queries:
            assert len(calls.items("/inbox?limit=20")) == number
        return len(queries)

    many(cluster, limited, charlie, 3)
    cost(3)  # the first call records the use of the token
    with_three = cost(3)
    many(cluster, limited, charlie, 19, first=3)
    assert cost(20) == with_three
    following = calls("/inbox?limit=20").json()["next"].partition("/api/v1")[2]
    assert len(calls.items(following)) == 2
