"""Who may read a report, which months there are, what is refused, and what a report costs."""

from __future__ import annotations

import csv
import io
import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from accounts.api_tokens import actions as token_actions
from accounts.core.actor import Actor
from accounts.models import Role, User
from catalog.models import GpuClass
from cluster.models import Cluster
from portal.core.csv_text import csv_text
from tenants.models import Membership, Tenant
from tests.support.rows import make
from tests.usage.reports.october import ran
from usage.gpu_hours.month import OUTSIDE
from usage.reports import queries
from usage.reports.calendar_month import CalendarMonth
from usage.reports.queries import read_report

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
OF_TEAM = (
    "/teams/team-a/usage",
    "/teams/team-a/usage.csv",
    "/api/v1/teams/team-a/usage-report",
    "/api/v1/teams/team-a/usage-report.csv",
)
OF_ALL = (
    "/operators/usage",
    "/operators/usage.csv",
    "/api/v1/operators/usage-report",
    "/api/v1/operators/usage-report.csv",
)


@pytest.fixture(autouse=True)
def now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queries, "timezone", SimpleNamespace(now=lambda: NOW))


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def with_token(user: User, *scopes: str) -> Client:
    _row, text = token_actions.create_token(
        name=" ".join(scopes), scopes=list(scopes), expires_in_days=30, by=Actor(user=user, via="page")
    )
    return Client(headers={"authorization": f"Bearer {text}"})


# ---- who may read it ---------------------------------------------------------------------------------------------


def test_members_and_staff_read_it_and_nobody_else(
    cluster: Cluster, team_a: Tenant, a100: GpuClass, alice: User, bob: User, charlie: User, dana: User, olga: User
) -> None:
    ran(team_a.namespaces.get(), a100, alice, NOW - HOUR, NOW)
    viewer, zoe, audra = make.user("Vera"), make.user("Zoe"), make.user("Audra", roles=[Role.AUDITOR])
    make.member(team_a, viewer, Membership.Role.VIEWER)
    make.member(make.tenant(cluster, slug="team-b"), zoe, Membership.Role.OWNER)
    members_and_staff = (alice, bob, viewer, dana, olga, audra)
    for person, status in (*((one, 200) for one in members_and_staff), (charlie, 404), (zoe, 404)):
        for path in OF_TEAM:
            answer = signed_in(person).get(path)
            assert answer.status_code == status, (person, path)
            assert (a100.slug in answer.text) is (status == 200)
    for person, status in ((olga, 200), (audra, 200), (alice, 404), (charlie, 404), (dana, 404)):
        for path in OF_ALL:
            assert signed_in(person).get(path).status_code == status, (person, path)


def test_a_token_needs_the_scope(team_a: Tenant, alice: User, olga: User) -> None:
    for person, paths in ((alice, OF_TEAM[2:]), (olga, OF_ALL[2:])):
        reads, launches = with_token(person, "read"), with_token(person, "launch", "request")
        for path in paths:
            assert reads.get(path).status_code == 200, path
            refused = launches.get(path)
            assert (refused.status_code, refused.json()["code"]) == (403, "missing_scope"), path


def test_who_left_the_team_finds_it_no_more(team_a: Tenant, bob: User) -> None:
    Membership.objects.filter(user=bob).delete()
    assert {signed_in(bob).get(path).status_code for path in OF_TEAM} == {404}


def test_a_program_may_ask_for_csv_alone(team_a: Tenant, alice: User) -> None:
    client = with_token(alice, "read")
    answer = client.get(OF_TEAM[3], headers={"accept": "text/csv"})
    assert (answer.status_code, answer["Content-Type"]) == (200, "text/csv; charset=utf-8")
    refused = client.get(f"{OF_TEAM[3]}?month=x", headers={"accept": "text/csv"})
    assert (refused.status_code, refused.json()["field"]) == (422, "month")


# ---- months ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("month", ["2026-13", "11-2026", "2026-12"])
def test_what_is_no_month_is_refused(team_a: Tenant, olga: User, month: str) -> None:
    client = signed_in(olga)
    for path in (*OF_TEAM, *OF_ALL):
        refused = client.get(f"{path}?month={month}")
        assert refused.status_code == 422, path
        assert month in refused.text
        if path.startswith("/api/"):
            assert (refused.json()["code"], refused.json()["field"]) == ("invalid", "month")


def test_the_selector_leads_to_the_nearest_months_with_usage(
    cluster: Cluster, team_a: Tenant, a100: GpuClass, alice: User
) -> None:
    team_b = make.tenant(cluster, slug="team-b", namespace="team-b-usage")
    for tenant, since in (
        (team_a, datetime(2026, 1, 31, 23, tzinfo=UTC)),
        (team_a, datetime(2026, 8, 31, 23, tzinfo=UTC)),
        (team_b, datetime(2026, 4, 1, tzinfo=UTC)),
        (team_a, NOW - HOUR),
    ):
        ran(tenant.namespaces.get(), a100, alice, since, since + 2 * HOUR if since < NOW - HOUR else None)

    def around(tenant: Tenant | None, month: str) -> tuple[str, str]:
        report = read_report(tenant, month)
        return str(report.previous), str(report.next)

    assert around(team_a, "2026-01") == ("None", "2026-02")
    assert around(team_a, "2026-02") == ("2026-01", "2026-08")
    # An interval over the border is in both months; what ends with a month is not in the next one.
    assert around(team_a, "2026-05") == ("2026-02", "2026-08")
    assert around(None, "2026-05") == ("2026-04", "2026-08")
    assert around(team_a, "2026-11") == ("2026-09", "None")
    assert around(team_b, "2026-11") == ("2026-04", "None")
    page = signed_in(alice).get("/teams/team-a/usage?month=2026-05").text
    assert 'href="?month=2026-02"' in page
    assert 'href="?month=2026-08"' in page
    assert "No usage in this month" in page


def test_an_interval_that_ends_with_a_month_is_not_in_the_next(team_a: Tenant, a100: GpuClass, alice: User) -> None:
    end = datetime(2026, 10, 1, tzinfo=UTC)
    ran(team_a.namespaces.get(), a100, alice, end - HOUR, end)
    ran(team_a.namespaces.get(), a100, alice, end + HOUR, end + HOUR)
    assert read_report(team_a, "2026-10").lines == ()
    assert read_report(team_a, "2026-11").previous == CalendarMonth(2026, 9)


def test_a_team_without_any_usage(team_a: Tenant, alice: User, olga: User) -> None:
    for person, page, call in ((alice, OF_TEAM[0], OF_TEAM[2]), (olga, OF_ALL[0], OF_ALL[2])):
        text = signed_in(person).get(page).text
        assert "No usage in this month" in text
        assert "Nothing earlier" in text
        body = signed_in(person).get(call).json()
        assert (body["month"], body["lines"], body["totals"]["teams"]) == ("2026-11", [], [])
        nothing = {"gpu_hours": "0.00", "cost": "0.00", "measured_cost": "0.00", "idle_cost": "0.00", "is_exact": True}
        assert body["totals"]["all"] == nothing


def test_the_home_and_the_list_of_teams_lead_to_it(team_a: Tenant, alice: User, olga: User) -> None:
    assert 'href="/teams/team-a/usage"' in signed_in(alice).get("/teams/team-a").text
    assert 'href="/operators/usage"' in signed_in(olga).get("/operators/teams").text
    assert 'href="/operators/usage"' in signed_in(olga).get("/operators").text


# ---- texts of other people ---------------------------------------------------------------------------------------


def test_the_csv_has_no_formula(team_a: Tenant, a100: GpuClass, alice: User) -> None:
    ran(team_a.namespaces.get(), a100, alice, NOW - HOUR, NOW)
    Tenant.objects.update(name='=HYPERLINK("x")')
    for name in ("=1+1", "+1", "-1", "@SUM(A1)"):
        User.objects.filter(pk=alice.pk).update(name=name)
        for path in (OF_TEAM[1], OF_TEAM[3]):
            [row] = csv.DictReader(io.StringIO(signed_in(alice).get(path).text))
            assert (row["team_name"], row["person"]) == ('\'=HYPERLINK("x")', f"'{name}")
            assert (row["month"], row["team"], row["class"]) == ("2026-11", "team-a", a100.slug)
            assert (row["unit_hours"], row["gpu_hours"], row["is_exact"]) == ("1.00", "1.00", "yes")


def test_a_number_below_0_is_no_formula() -> None:
    assert csv_text(["a", "b"], [[Decimal("-0.01"), "-0.01"]]) == "a,b\r\n-0.01,'-0.01\r\n"


# ---- cost --------------------------------------------------------------------------------------------------------


def queries_of(client: Client, path: str) -> int:
    with CaptureQueriesContext(connection) as asked:
        assert client.get(path).status_code == 200
    return len(asked)


def test_a_page_makes_as_many_queries_whatever_it_shows(
    team_a: Tenant, cluster: Cluster, a100: GpuClass, alice: User, bob: User, olga: User
) -> None:
    ran(team_a.namespaces.get(), a100, alice, NOW - HOUR, NOW)
    cases = ((signed_in(alice), OF_TEAM[0], 4), (signed_in(olga), OF_ALL[0], 3))
    before = [queries_of(client, path) for client, path, _own in cases]
    # Help makes only those that every page makes.
    every = [queries_of(client, "/help") for client, _path, _own in cases]
    assert [found - of_every for found, of_every in zip(before, every, strict=True)] == [own for *_, own in cases]
    for number in range(4):
        team = make.tenant(cluster, slug=f"more-{number}", namespace=f"more-{number}-usage")
        other = make.gpu_class(cluster, slug=f"c{number}")
        for back in (0, 40):
            since = NOW - timedelta(days=back) - HOUR
            ran(team.namespaces.get(), other, bob, since, since + HOUR)
            ran(team_a.namespaces.get(), other, bob, since, since + HOUR)
    assert [queries_of(client, path) for client, path, _own in cases] == before


# As many that PostgreSQL prefers an index: it reads a small table from begin to end.
TEAMS, MONTHS, PER_DAY = 10, 12, 10
HISTORY = """
INSERT INTO workloads_allocationinterval (
       pod_uid, namespace_id, gpu_class_id, flavor, units, weight, price_per_unit_hour, priority, source, queued_uid,
       starts_at, ends_at, end_reason, is_exact)
SELECT 'pod-' || namespace.id || '-' || number, namespace.id, %(class)s, '', 1, 1, 1, '', 'pods', '',
       %(begin)s::timestamptz + number * %(step)s::interval,
       %(begin)s::timestamptz + number * %(step)s::interval + interval '6 hours', 'Deleted', false
  FROM tenants_namespace namespace, generate_series(0, %(count)s - 1) number"""


def intervals_read(statement: str) -> int:
    """How many intervals the statement reads, whether or not it uses them."""

    def nodes(plan: dict[str, Any]) -> Any:
        yield plan
        for inner in plan.get("Plans", ()):
            yield from nodes(inner)

    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {statement}")
        said = cursor.fetchone()[0]
    [found] = json.loads(said) if isinstance(said, str) else said
    return sum(
        round(one["Actual Loops"] * (one["Actual Rows"] + one.get("Rows Removed by Filter", 0)
              + one.get("Rows Removed by Index Recheck", 0)))
        for one in nodes(found["Plan"])
        if one.get("Relation Name") == "workloads_allocationinterval"
    )  # fmt: skip


def test_a_report_reads_only_its_month_and_team(cluster: Cluster, a100: GpuClass) -> None:
    teams = [make.tenant(cluster, slug=f"t{number}", namespace=f"t{number}-history") for number in range(TEAMS)]
    begin = datetime(2025, 12, 1, tzinfo=UTC)
    values = {
        "class": a100.pk,
        "begin": begin,
        "step": timedelta(days=1) / PER_DAY,
        "count": (NOW - begin).days * PER_DAY,
    }
    with connection.cursor() as cursor:
        cursor.execute(HISTORY, values)
        cursor.execute("ANALYZE workloads_allocationinterval, tenants_namespace")
    # And those that began before the month.
    of_a_team = 31 * PER_DAY + 3
    for tenant, most in ((None, TEAMS * of_a_team), (teams[3], of_a_team)):
        for month in ("2025-12", "2026-05", "2026-11"):
            with CaptureQueriesContext(connection) as asked:
                report = read_report(tenant, month)
            assert {one.person for one in report.lines} == {OUTSIDE}
            months, lines, *balances = (one["sql"] for one in asked)
            assert 0 < intervals_read(lines) <= most, (tenant, month)
            assert 0 < intervals_read(months) <= MONTHS, (tenant, month)
            assert len(balances) == (tenant is None)
            assert all(0 < intervals_read(one) <= most for one in balances), month
