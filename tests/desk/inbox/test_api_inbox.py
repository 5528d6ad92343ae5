"""/api/v1/inbox: returns the groups of the inbox page to scripts of approvers."""

from __future__ import annotations

from django.db import connection
from django.test.utils import CaptureQueriesContext

from accounts.models import User
from catalog.models import GpuClass
from cluster.models import Cluster
from tenants.models import Tenant
from tests.desk.inbox.test_inbox import limited
from tests.support.http.callers import CatalogCaller, told
from tests.support.rows import make
from tests.support.rows.inbox import in_use, many, team, waits

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


def test_approvers_read_the_facts_of_the_page_and_nobody_else(
    team_a: Tenant, limited: GpuClass, alice: User, charlie: User, dana: User
) -> None:
    make.grant(team_a, limited, units=4)
    in_use(team_a.namespaces.get(), limited, alice, units=3)
    earlier = waits(team_a, limited, alice, units=5)
    earlier.lines.update(state="denied", reason="Not now.", decided_at=earlier.filed_at, decided_by=dana)
    pending = waits(team_a, limited, alice, units=6)
    path = f"/requests/{pending.pk}/facts"
    facts = CatalogCaller(dana)(path).json()
    [of_class] = facts["classes"]
    assert (of_class["gpu_class"], of_class["held"], of_class["promised"], of_class["limit"]) == (
        limited.slug, 4, 4, 8,
    )  # fmt: skip
    assert (of_class["peak"], of_class["runs"], of_class["runs_waited"]) == (3, 1, 1)
    assert of_class["free"] is None  # nobody looked at the cluster
    assert [(one["request"], one["state"], one["reason"]) for one in facts["earlier"]] == [
        (earlier.pk, "denied", "Not now.")
    ]
    assert [(one["kind"], one["change"], one["result"]) for one in facts["plan"]["objects"]] == [
        ("ClusterQueue", "change", "accepted")
    ]
    [in_inbox] = CatalogCaller(dana).items("/inbox")
    assert (facts["group"], facts["reasons"]) == (in_inbox["group"], in_inbox["reasons"])
    assert [one["name"] for one in facts["members"]] == ["Alice"]
    assert told(CatalogCaller(alice)(path))[:2] == (403, "not_allowed")
    assert told(CatalogCaller(charlie)(path))[:2] == (404, "not_found")
    pending.lines.update(state="withdrawn")
    assert CatalogCaller(dana)(path).json()["group"] is None


def test_an_approver_of_the_team_itself_sees_no_facts(team_a: Tenant, limited: GpuClass, alice: User) -> None:
    erin = make.approver("Erin")
    make.member(team_a, erin)
    pending = waits(team_a, limited, alice, units=2)
    assert told(CatalogCaller(erin)(f"/requests/{pending.pk}/facts"))[:2] == (403, "not_allowed")


def test_the_facts_cost_the_same_for_many_classes(team_a: Tenant, cluster: Cluster, alice: User, dana: User) -> None:
    def cost(number: int) -> int:
        classes = [make.gpu_class(cluster, slug=f"c{number}-{index}", promise_limit=9) for index in range(number)]
        pending = waits(team_a, classes[0], alice, units=1)
        line = pending.lines.get()
        for one in classes[1:]:
            line.pk, line.gpu_class = None, one
            line.save()
        calls = CatalogCaller(dana)
        with CaptureQueriesContext(connection) as queries:
            assert len(calls(f"/requests/{pending.pk}/facts").json()["classes"]) == number
        return len(queries)

    few, many_ = cost(1), cost(6)
    assert many_ <= few + 2
