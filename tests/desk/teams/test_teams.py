"""The list of teams: states, quota and use, activity, filters, orders, pages, CSV, API, and what it costs."""

from __future__ import annotations

import csv
import io
from datetime import timedelta
from fractions import Fraction
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.models import Event, Role, User
from catalog.models import GpuClass
from cluster.models import AppliedObject, Cluster
from desk.teams import queries
from desk.teams.queries import read_teams, team_counts
from desk.teams.sql import SORTS
from desk.teams.types import TEAM_STATES, TeamFilter, TeamListRow
from portal.core.due import owner_label
from portal.core.errors import Refused
from tenants.lifecycle import policy as lifecycle_policy
from tenants.lifecycle.queries import lifecycle_of
from tenants.models import Grant, Membership, Namespace, Tenant
from tests.support.rows import make, mirrored, running
from workloads.models import Run, Workload

pytestmark = pytest.mark.django_db
WHOLE = {"nvidia.com/gpu": 3}


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def team(cluster: Cluster, slug: str, **values: Any) -> Tenant:
    """Provisioned unless `values`, columns of its namespace, say otherwise."""
    found = make.tenant(cluster, slug=slug)
    Namespace.objects.filter(tenant=found).update(**{"applied_as_of": timezone.now(), **values})
    return found


def slugs(cluster: Cluster, **chosen: Any) -> list[str]:
    return [row.slug for row in read_teams(cluster, TeamFilter(**chosen)).rows]


def row_of(cluster: Cluster, slug: str) -> TeamListRow:
    [found] = [row for row in read_teams(cluster, TeamFilter()).rows if row.slug == slug]
    return found


@pytest.fixture
def one_in_each_state(cluster: Cluster) -> dict[str, Tenant]:
    now = timezone.now()
    closed = {"wanted": Namespace.Wanted.CLOSED, "volumes_until": now + timedelta(days=9)}
    found = {
        "active": team(cluster, "t-active"),
        "trial": team(cluster, "t-trial", is_trial=True),
        "provisioning": team(cluster, "t-provisioning", applied_as_of=None),
        "stuck": team(cluster, "t-stuck", error_code="refused", error_text="The quota was rejected."),
        "suspended": team(cluster, "t-suspended", wanted=Namespace.Wanted.SUSPENDED),
        "closing": team(cluster, "t-closing", **closed, closes_at=now + timedelta(hours=1)),
        "closed": team(cluster, "t-closed", **closed, closes_at=now - timedelta(hours=1)),
        "no_namespace": Tenant.objects.create(slug="t-without", name="T"),
    }
    assert {*found} == {*TEAM_STATES}
    return found


# ---- states ------------------------------------------------------------------------------------------------------


def test_each_team_has_one_state_and_the_filter_and_the_counts_agree(
    cluster: Cluster, one_in_each_state: dict[str, Tenant]
) -> None:
    assert {row.slug: row.state for row in read_teams(cluster, TeamFilter()).rows} == {
        one.slug: state for state, one in one_in_each_state.items()
    }
    for state, one in one_in_each_state.items():
        assert slugs(cluster, state=state) == [one.slug]
    assert team_counts(cluster) == dict.fromkeys(TEAM_STATES, 1)
    assert row_of(cluster, "t-stuck").problem == "The quota was rejected."


def test_the_states_of_a_closed_team_are_those_of_the_policy(
    cluster: Cluster, one_in_each_state: dict[str, Tenant]
) -> None:
    for state in ("suspended", "closing", "closed"):
        row = one_in_each_state[state].namespaces.get()
        assert lifecycle_policy.lifecycle_state(lifecycle_of(row), at=timezone.now()) == state


# ---- quota and use -----------------------------------------------------------------------------------------------


def test_quota_and_use_by_class_and_shared_gpus_are_not_added_to_exclusive_ones(
    cluster: Cluster, team_a: Tenant, namespace_a: Namespace, a100: GpuClass
) -> None:
    common = {"partition": "1g.10gb", "resource": "nvidia.com/mig-1g.10gb", "node_labels": {"a": "b"}}
    slices = make.gpu_class(cluster, slug="slice", weight="0.5", **common)
    shares = make.gpu_class(
        cluster, slug="share", sharing="time-slicing", replicas=4, weight="0.25", units_per_workload=1,
        resource="nvidia.com/gpu.shared", node_labels={"c": "d"},
    )  # fmt: skip
    cores = make.gpu_class(cluster, slug="cores", interface="none", resource="", product="", vendor="")
    for one, units in ((a100, 2), (slices, 3), (shares, 4), (cores, 8)):
        make.grant(team_a, one, units=units)
    make.grant(team_a, a100, units=1, kind="boost")
    ended = timezone.now() - timedelta(days=2)
    make.grant(make.tenant(cluster, slug="team-z"), a100, units=9, since=ended - timedelta(days=9), until=ended)
    assert {use.used for use in row_of(cluster, "team-a").uses} == {None}
    pod = mirrored.pod("p", node="a100-1", namespace=namespace_a.name, gpu_class=a100.slug, **WHOLE)
    mirrored.hardware_seen(cluster, Pod=[pod])

    row = row_of(cluster, "team-a")

    assert {use.slug: (use.used, use.quota, use.unit) for use in row.uses} == {
        a100.slug: (3, 3, "GPU"),
        "slice": (0, 3, "slice"),
        "share": (0, 4, "share"),
        "cores": (0, 8, "core"),
    }
    assert (row.exclusive.quota, row.exclusive.used) == (Fraction(9, 2), 3)
    assert (row.shared.quota, row.shared.used) == (1, 0)
    assert row_of(cluster, "team-z").uses == ()


def test_units_that_run_in_a_grace_period_are_not_borrowed(
    cluster: Cluster, team_a: Tenant, namespace_a: Namespace, a100: GpuClass, olga: User
) -> None:
    """As on the home of the team and on the page Cluster."""
    ended = timezone.now() - timedelta(hours=1)
    make.grant(team_a, a100, units=2, since=ended - timedelta(days=9), until=ended)
    Grant.objects.update(grace=timedelta(days=1))
    borrower = make.tenant(cluster, slug="team-b", namespace="team-b")
    make.grant(borrower, a100, units=1)
    pods = [
        mirrored.pod(place, node="a100-1", namespace=place, gpu_class=a100.slug, **{"nvidia.com/gpu": 2})
        for place in (namespace_a.name, "team-b")
    ]
    mirrored.hardware_seen(cluster, Pod=pods)
    for slug, expected in (("team-a", (2, 0, 0)), ("team-b", (2, 1, 1))):
        [use] = row_of(cluster, slug).uses
        assert (use.used, use.quota, use.borrowed) == expected
        page = signed_in(olga).get(f"/operators/teams?q={slug}").text
        assert ("borrows" in page) == (slug == "team-b")


def test_owners_expiry_queued_runs_and_objects_out_of_sync(
    cluster: Cluster, team_a: Tenant, namespace_a: Namespace, a100: GpuClass, alice: User, bob: User
) -> None:
    first, second = timezone.now() + timedelta(days=3), timezone.now() + timedelta(days=8)
    make.grant(team_a, a100, units=2, until=second)
    make.grant(team_a, a100, units=1, kind="boost", until=first)
    none_left = make.gpu_class(cluster, slug="none-left", node_labels={"a": "b"})
    make.grant(team_a, none_left, units=0, until=first - timedelta(days=1))
    running.workload(namespace_a, a100, name="waits", by=alice)
    sent = {"cluster": cluster, "owner": owner_label(namespace_a), "kind": "RoleBinding", "result": "applied"}
    AppliedObject.objects.create(name="drifted", difference={"fields": ["x"]}, **sent)
    AppliedObject.objects.create(name="well", **sent)
    AppliedObject.objects.create(name="rejected", **{**sent, "result": "refused"})

    row = row_of(cluster, "team-a")

    assert [one.email for one in row.owners] == ["alice@example.org"]
    assert row.next_expiry_at == first
    assert (row.queued_runs, row.out_of_sync) == (1, 2)


# ---- activity ----------------------------------------------------------------------------------------------------


def acted(slug: str, by: User | None, *, days: int) -> None:
    Event.objects.create(
        at=timezone.now() - timedelta(days=days), tenant=slug, actor_id=by.pk if by else None, verb="x.y", row="r"
    )


def ran(found: Workload, *, days: int, is_over: bool = True) -> None:
    at = timezone.now() - timedelta(days=days)
    ended = {"ended_at": at, "outcome": "succeeded"} if is_over else {}
    Run.objects.filter(workload=found).update(requested_at=at - timedelta(days=1), **ended)


def test_activity_is_the_last_run_or_action_of_a_person(
    cluster: Cluster, a100: GpuClass, namespace_a: Namespace, alice: User
) -> None:
    Tenant.objects.update(created_at=timezone.now() - timedelta(days=100))
    acted("team-a", alice, days=30)
    acted("team-a", None, days=1)
    assert idle_days(cluster) == 30, "what the portal does by itself is no activity"
    one = running.workload(namespace_a, a100, name="one", by=alice)
    ran(one, days=20)
    assert idle_days(cluster) == 20, "a run counts until its end"
    acted("team-a", alice, days=10)
    assert idle_days(cluster) == 10
    assert slugs(cluster, idle_days=9) == ["team-a"]
    assert slugs(cluster, idle_days=11) == []
    Run.objects.update(ended_at=None, outcome="")
    assert row_of(cluster, "team-a").is_busy
    assert slugs(cluster, idle_days=9) == [], "a team whose workload runs since long ago is not idle"


def idle_days(cluster: Cluster) -> int:
    at = row_of(cluster, "team-a").last_activity_at
    assert at is not None
    return (timezone.now() - at).days


def test_a_team_without_any_activity_is_idle_since_it_was_created(cluster: Cluster) -> None:
    team(cluster, "old")
    Tenant.objects.update(created_at=timezone.now() - timedelta(days=50))
    team(cluster, "new")
    assert row_of(cluster, "old").last_activity_at is None
    assert slugs(cluster, idle_days=40) == ["old"]


# ---- filters, orders, pages --------------------------------------------------------------------------------------


def test_filters_combine(cluster: Cluster, a100: GpuClass) -> None:
    for slug in ("lab-one", "lab-two", "x_y", "xzy"):
        team(cluster, slug)
    make.grant(Tenant.objects.get(slug="lab-two"), a100, units=1)
    assert slugs(cluster, text="lab") == ["lab-one", "lab-two"]
    assert slugs(cluster, text="two LAB") == ["lab-two"]
    assert slugs(cluster, text="x_") == ["x_y"]
    assert slugs(cluster, text="%") == []
    assert slugs(cluster, text="lab", gpu_class=a100.pk, state="active") == ["lab-two"]
    assert slugs(cluster, text="lab", gpu_class=a100.pk, state="trial") == []


@pytest.mark.parametrize("sort", SORTS)
def test_pages_of_every_order_show_each_team_once(
    cluster: Cluster, a100: GpuClass, one_in_each_state: dict[str, Tenant], alice: User, sort: str
) -> None:
    now = timezone.now()
    for days, one in enumerate(one_in_each_state.values()):
        if days % 3:
            make.grant(one, a100, units=1, until=now + timedelta(days=1 + days % 2))
            acted(one.slug, alice, days=1 + days % 2)
    running.workload(one_in_each_state["trial"].namespaces.get(), a100, by=alice)
    expected = slugs(cluster, sort=sort)
    assert len(expected) == len(TEAM_STATES)
    seen: list[str] = []
    cursor = None
    while cursor or not seen:
        page = read_teams(cluster, TeamFilter(sort=sort), cursor=cursor, limit=3)
        seen += [row.slug for row in page.rows]
        cursor = page.next_cursor
    assert seen == expected


def test_orders(cluster: Cluster, a100: GpuClass, alice: User) -> None:
    now = timezone.now()
    for slug, days in (("b", 5), ("a", 9), ("c", 2)):
        found = team(cluster, slug)
        Tenant.objects.filter(pk=found.pk).update(created_at=now - timedelta(days=100))
        acted(slug, alice, days=days)
        make.grant(found, a100, units=1, until=now + timedelta(days=days))
    assert slugs(cluster) == ["a", "b", "c"]
    assert slugs(cluster, sort="created") == ["c", "a", "b"]
    assert slugs(cluster, sort="activity") == ["a", "b", "c"]
    assert slugs(cluster, sort="expiry") == ["c", "b", "a"]
    running.workload(Namespace.objects.get(name="a"), a100, by=alice)
    assert slugs(cluster, sort="activity") == ["b", "c", "a"], "a team that runs something is not idle"


@pytest.mark.parametrize("cursor", ["x", "e30", "WyJ0ZWFtcyJd", "é", "WyJ0ZWFtcyIsImNyZWF0ZWQiLDFd"])
def test_what_is_no_cursor_of_this_order_is_refused(cluster: Cluster, cursor: str) -> None:
    with pytest.raises(Refused) as refused:
        read_teams(cluster, TeamFilter(), cursor=cursor)
    assert refused.value.code == "bad_cursor"


def test_a_cursor_belongs_to_its_order(cluster: Cluster) -> None:
    for slug in ("a", "b"):
        team(cluster, slug)
    cursor = read_teams(cluster, TeamFilter(sort="activity"), limit=1).next_cursor
    assert read_teams(cluster, TeamFilter(sort="activity"), cursor=cursor).rows
    with pytest.raises(Refused) as refused:
        read_teams(cluster, TeamFilter(sort="expiry"), cursor=cursor)
    assert refused.value.code == "bad_cursor"


# ---- page, CSV, API ----------------------------------------------------------------------------------------------


def test_only_staff_who_see_the_queue_find_it(team_a: Tenant, alice: User, dana: User, olga: User) -> None:
    audra = make.user("Audra", roles=[Role.AUDITOR])
    for person, expected in ((olga, 200), (audra, 200), (dana, 404), (alice, 404)):
        for path in ("/operators/teams", "/operators/teams.csv", "/api/v1/operators/teams"):
            assert signed_in(person).get(path).status_code == expected, (person, path)


def test_the_page_filters_by_its_address_and_says_what_it_shows(
    cluster: Cluster, a100: GpuClass, one_in_each_state: dict[str, Tenant], olga: User
) -> None:
    make.grant(one_in_each_state["stuck"], a100, units=4)
    client = signed_in(olga)
    text = client.get(f"/operators/teams?state=stuck&class={a100.slug}").text
    assert "t-stuck" in text
    assert "t-active" not in text
    assert "–/4 GPUs" in text
    assert "The quota was rejected." in text
    assert "No team matches this filter." in client.get("/operators/teams?q=nobody").text
    assert "t-active" in client.get("/operators/teams?state=bad&idle=x&sort=y&class=z").text


def test_the_csv_has_the_rows_of_the_filter_and_no_formula(
    cluster: Cluster, a100: GpuClass, olga: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queries, "BATCH", 2)
    for slug in ("a", "b", "c", "other"):
        Tenant.objects.filter(pk=team(cluster, slug).pk).update(name=f"=HYPERLINK({slug})")
    make.grant(Tenant.objects.get(slug="b"), a100, units=4)
    answer = signed_in(olga).get("/operators/teams.csv?q=HYPERLINK&sort=expiry")
    assert answer["Content-Type"] == "text/csv; charset=utf-8"
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert [(row["team"], row["name"], row["class"], row["quota"], row["used"]) for row in rows] == [
        ("a", "'=HYPERLINK(a)", "", "", ""),
        ("b", "'=HYPERLINK(b)", a100.slug, "4", ""),
        ("c", "'=HYPERLINK(c)", "", "", ""),
        ("other", "'=HYPERLINK(other)", "", "", ""),
    ]


def test_the_api_pages_and_refuses_what_is_no_filter(cluster: Cluster, a100: GpuClass, olga: User) -> None:
    for slug in ("a", "b", "c"):
        make.grant(team(cluster, slug), a100, units=2)
    client = signed_in(olga)
    first = client.get(f"/api/v1/operators/teams?gpu_class={a100.slug}&limit=2&sort=created").json()
    assert [item["team"] for item in first["items"]] == ["c", "b"]
    assert first["items"][0]["quota"] == [
        {"gpu_class": a100.slug, "unit": "GPU", "quota": 2, "used": None, "is_shared": False}
    ]
    assert first["items"][0]["gpus"]["exclusive"] == {"quota": "2", "used": None}
    assert [item["team"] for item in client.get(first["next"]).json()["items"]] == ["a"]
    for query, field in (
        ("state=x", "state"),
        ("sort=x", "sort"),
        ("idle_days=0", "idle_days"),
        ("idle_days=a", "idle_days"),
    ):
        refused = client.get(f"/api/v1/operators/teams?{query}")
        assert (refused.status_code, refused.json()["field"]) == (422, field)


# ---- cost --------------------------------------------------------------------------------------------------------


def test_queries_do_not_grow_with_the_teams(cluster: Cluster, a100: GpuClass, alice: User, olga: User) -> None:
    def asked() -> tuple[int, int]:
        with CaptureQueriesContext(connection) as found:
            read_teams(cluster, TeamFilter())
        of_list = len(found)
        client = signed_in(olga)
        client.get("/operators/teams")
        with CaptureQueriesContext(connection) as of_page:
            client.get("/operators/teams")
        return of_list, len(of_page)

    mirrored.hardware_seen(cluster)
    make.grant(team(cluster, "first"), a100, units=1)
    few = asked()
    for number in range(12):
        found = team(cluster, f"team-{number}")
        make.grant(found, a100, units=1)
        make.member(found, alice, Membership.Role.OWNER)
        running.workload(found.namespaces.get(), a100, by=alice, origin=f"n{number}")
    assert asked() == few
    assert few[0] == 8


@pytest.mark.parametrize("sort", ["team", "created"])
def test_a_page_of_ten_thousand_teams_reads_the_teams_that_it_shows(cluster: Cluster, sort: str) -> None:
    """As PostgreSQL executes it: rows read of teams, namespaces and events."""
    limit, number = 50, 10_000
    teams = Tenant.objects.bulk_create(Tenant(slug=f"team-{n:05}", name=f"Team {n}") for n in range(number))
    Namespace.objects.bulk_create(
        Namespace(tenant=one, cluster=cluster, name=one.slug, due_at=None, applied_as_of=timezone.now())
        for one in teams
    )
    events = (Event(tenant=one.slug, actor_id=1, via="page", verb="x.y", row="r") for one in teams)
    Event.objects.bulk_create(events, batch_size=2000)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    middle = TeamFilter(sort=sort)
    first = read_teams(cluster, middle, limit=limit)
    with CaptureQueriesContext(connection) as asked:
        read_teams(cluster, middle, cursor=first.next_cursor, limit=limit)
    [page] = [one["sql"] for one in asked if "ORDER BY team." in one["sql"]]
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {page}")
        plan = cursor.fetchone()[0][0]["Plan"]
    read = dict(rows_read(plan))
    assert read.keys() >= {"tenants_tenant", "tenants_namespace", "accounts_event"}
    assert max(read.values()) <= 2 * limit, read


def rows_read(plan: dict[str, Any]) -> list[tuple[str, float]]:
    """By table, with the rows that a filter removed."""
    each = plan["Actual Rows"] + plan.get("Rows Removed by Filter", 0)
    own = [(plan["Relation Name"], each * plan["Actual Loops"])] if "Relation Name" in plan else []
    return own + [one for part in plan.get("Plans", ()) for one in rows_read(part)]
