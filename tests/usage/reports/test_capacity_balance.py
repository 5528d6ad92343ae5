"""What was not allocated: page, API and CSV have the same figures, which with those of teams are capacity × price."""

from __future__ import annotations

import csv
import io
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pytest
from django.test import Client

from accounts.models import User
from catalog.models import ClassPrice, GpuClass
from cluster.models import Cluster
from tenants.models import Tenant
from tests.support.rows import make
from tests.usage.reports import october
from tests.usage.reports.october import HOUR, NOVEMBER, NOW, OCTOBER, expected, expected_capacity, ran, rounded, sums
from tests.usage.reports.test_agreement import signed_in, table
from usage.models import CapacityInterval
from usage.reports import queries

pytestmark = pytest.mark.django_db
PAGE, CALL = "/operators/usage?month=2026-10", "/api/v1/operators/usage-report?month=2026-10"
FILES = ("/operators/capacity-report.csv?month=2026-10", "/api/v1/operators/capacity-report.csv?month=2026-10")
SIGNS = {
    "capacity_cost": -1,
    "allocated_cost": 1,
    "not_recorded_cost": -1,
    "beyond_capacity_cost": -1,
    "price_difference_cost": -1,
    "unallocated_cost": 1,
}
CENT = Decimal("0.01")


@pytest.fixture(autouse=True)
def now(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.TIME_ZONE = "Europe/Berlin"
    monkeypatch.setattr(queries, "timezone", SimpleNamespace(now=lambda: NOW))


def capacity_of(client: Client, call: str = CALL) -> dict[str, Any]:
    found = client.get(call)
    assert found.status_code == 200, found.text
    return dict(found.json()["capacity"])


def by_class(client: Client, call: str = CALL) -> dict[str, dict[str, Any]]:
    return {one["gpu_class"]: one for one in capacity_of(client, call)["classes"]}


def cost(gpu_class: GpuClass, price: str, since: datetime) -> None:
    GpuClass.objects.filter(pk=gpu_class.pk).update(price_per_unit_hour=price)
    ClassPrice.objects.create(gpu_class=gpu_class, price_per_unit_hour=price, since=since)


def had(gpu_class: GpuClass, units: int, since: datetime, until: datetime) -> None:
    CapacityInterval.objects.create(gpu_class=gpu_class, units=units, starts_at=since, ends_at=until)


def test_it_is_what_the_rows_say(
    cluster: Cluster, team_a: Tenant, a100: GpuClass, alice: User, bob: User, olga: User
) -> None:
    october.october(cluster, team_a, a100, alice, bob)
    found = by_class(signed_in(olga))
    exact, lines = expected_capacity(OCTOBER, NOVEMBER), expected(OCTOBER, NOVEMBER)
    assert found.keys() == {a100.slug, "slice", "old"}
    for slug in (a100.slug, "slice"):
        said = found[slug]
        for name, value in exact[slug].items():
            if not name.startswith("unallocated"):
                assert Decimal(said[name]) == rounded(value), (slug, name)
        # It contains the rounding of the lines and of the four figures beside it.
        most = (len([one for one in lines if one[2] == slug]) + 4) * CENT / 2
        for name in ("unallocated_unit_hours", "unallocated_cost"):
            assert abs(Decimal(said[name]) - rounded(exact[slug][name])) <= most, (slug, name)
    # Every part is there, so that none of the checks above is of 0 alone.
    assert all(exact[a100.slug][name] for name in (*SIGNS, "beyond_capacity_unit_hours") if name != "allocated_cost")


def test_it_adds_up_to_the_cent_with_the_lines_of_the_teams(
    cluster: Cluster, team_a: Tenant, a100: GpuClass, alice: User, bob: User, olga: User
) -> None:
    october.october(cluster, team_a, a100, alice, bob)
    client = signed_in(olga)
    of_lines = sums(expected(OCTOBER, NOVEMBER), lambda one: one[2])
    capacity = capacity_of(client)
    for one in capacity["classes"]:
        assert Decimal(one["allocated_cost"]) == of_lines[one["gpu_class"]][1]
        if one["capacity_cost"] is not None:
            assert sum(sign * Decimal(one[name]) for name, sign in SIGNS.items()) == 0
            units = {name.replace("_cost", "_unit_hours"): sign for name, sign in SIGNS.items() if "price" not in name}
            assert sum(sign * Decimal(one[name]) for name, sign in units.items()) == 0
    assert sum(sign * Decimal(capacity["all"][name]) for name, sign in SIGNS.items()) == 0
    assert Decimal(capacity["all"]["allocated_cost"]) == sum(cost for _hours, cost in of_lines.values())


def test_page_and_csv_have_the_same(
    cluster: Cluster, team_a: Tenant, a100: GpuClass, alice: User, bob: User, olga: User
) -> None:
    october.october(cluster, team_a, a100, alice, bob)
    client = signed_in(olga)
    capacity = capacity_of(client)
    of_api = {one["gpu_class"]: one for one in capacity["classes"]}
    texts = [client.get(path) for path in FILES]
    assert texts[0].text == texts[1].text
    assert 'filename="capacity-2026-10.csv"' in texts[0]["Content-Disposition"]
    rows = {row["class"]: row for row in csv.DictReader(io.StringIO(texts[0].text))}
    assert rows.keys() == of_api.keys()
    for slug, row in rows.items():
        assert (row.pop("month"), row.pop("class")) == ("2026-10", slug)
        said, since = row.pop("recorded_since"), of_api[slug]["recorded_since"]
        assert (said and datetime.fromisoformat(said)) == ((since and datetime.fromisoformat(since)) or "")
        assert row == {name: "" if of_api[slug][name] is None else of_api[slug][name] for name in row}
    *shown, total = table(client.get(PAGE).text, "capacity by class")
    names = (
        *("capacity_unit_hours", "capacity_cost", "allocated_cost", "unallocated_unit_hours", "unallocated_cost"),
        *("not_recorded_cost", "beyond_capacity_cost", "price_difference_cost"),
    )
    assert [row[1:] for row in shown] == [
        ["unknown" if one[name] is None else one[name] for name in names] for one in capacity["classes"]
    ]
    assert [one for one in total[1:] if one] == [capacity["all"][name] for name in names if "unit_hours" not in name]


def test_of_one_price_teams_and_unallocated_are_the_capacity_and_nothing_else(
    team_a: Tenant, a100: GpuClass, alice: User, olga: User
) -> None:
    """Node-hours × price: eight GPUs for the 745 hours of a month in which one hour comes twice."""
    now, since = NOVEMBER + HOUR, datetime(2026, 10, 5, tzinfo=UTC)
    cost(a100, "2.3333", OCTOBER)
    had(a100, 8, OCTOBER - HOUR, NOVEMBER + HOUR)
    for number in range(3):
        begin = since + number * HOUR / 3
        ran(team_a.namespaces.get(), a100, alice, begin, begin + HOUR / 3, priority=f"p{number}")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(queries, "timezone", SimpleNamespace(now=lambda: now))
        client = signed_in(olga)
        report, found = client.get(CALL).json(), by_class(client)[a100.slug]
        idle = by_class(client, "/api/v1/operators/usage-report?month=2026-11")[a100.slug]
        page = client.get("/operators/usage?month=2026-11").text
    assert (found["capacity_unit_hours"], found["capacity_cost"]) == ("5960.00", "13906.47")
    assert Decimal(report["totals"]["all"]["cost"]) + Decimal(found["unallocated_cost"]) == Decimal("13906.47")
    assert (found["not_recorded_cost"], found["beyond_capacity_cost"], found["price_difference_cost"]) == ("0.00",) * 3
    # The rounding of three lines of 0.3333 hours is in it.
    assert (found["allocated_unit_hours"], found["unallocated_unit_hours"]) == ("0.99", "5959.01")
    # A month in which nothing was held.
    assert (idle["recorded_hours"], idle["unallocated_cost"]) == ("1.00", "18.67")
    assert "No usage in this month" not in page
    assert table(page, "capacity by class")[0][5] == "18.67"


def test_a_run_keeps_its_price_and_the_difference_is_a_figure_of_its_own(
    team_a: Tenant, a100: GpuClass, alice: User, olga: User
) -> None:
    begin = datetime(2026, 10, 5, tzinfo=UTC)
    cost(a100, "1.0000", OCTOBER)
    had(a100, 4, begin, begin + 4 * HOUR)
    ran(team_a.namespaces.get(), a100, alice, begin, begin + 4 * HOUR)
    cost(a100, "3.0000", begin + HOUR)
    found = by_class(signed_in(olga))[a100.slug]
    # An hour at 1, three at 3, of four units; one unit of them at 1 throughout.
    assert (found["capacity_cost"], found["allocated_cost"]) == ("40.00", "4.00")
    assert (found["price_difference_cost"], found["unallocated_cost"]) == ("-6.00", "30.00")
    [row] = csv.DictReader(io.StringIO(signed_in(olga).get(FILES[0]).text))
    assert row["price_difference_cost"] == "-6.00"


def test_units_held_beyond_the_capacity_hide_no_unallocated_ones(
    team_a: Tenant, a100: GpuClass, alice: User, olga: User
) -> None:
    begin = datetime(2026, 10, 5, tzinfo=UTC)
    cost(a100, "1.0000", OCTOBER)
    had(a100, 2, begin, begin + HOUR)
    had(a100, 0, begin + HOUR, begin + 2 * HOUR)
    ran(team_a.namespaces.get(), a100, alice, begin, begin + 2 * HOUR)
    found = by_class(signed_in(olga))[a100.slug]
    assert (found["capacity_cost"], found["allocated_cost"]) == ("2.00", "2.00")
    assert (found["beyond_capacity_cost"], found["unallocated_cost"]) == ("1.00", "1.00")


def test_what_is_not_recorded_is_unknown_and_not_0(
    cluster: Cluster, team_a: Tenant, a100: GpuClass, alice: User, olga: User
) -> None:
    begin = datetime(2026, 10, 5, tzinfo=UTC)
    other = make.gpu_class(cluster, slug="other", node_labels={}, price_per_unit_hour="1")
    for one in (a100, other):
        GpuClass.objects.filter(pk=one.pk).update(price_per_unit_hour="1")
        ran(team_a.namespaces.get(), one, alice, begin, begin + 3 * HOUR)
    cost(a100, "1.0000", OCTOBER)
    had(a100, 1, begin + HOUR, begin + 2 * HOUR)
    # A number without a price is no cost.
    had(other, 1, begin + HOUR, begin + 2 * HOUR)
    client = signed_in(olga)
    found = by_class(client)
    assert [found[a100.slug][name] for name in ("recorded_hours", "capacity_cost", "not_recorded_cost")] == [
        "1.00", "1.00", "2.00",
    ]  # fmt: skip
    assert found[a100.slug]["unallocated_cost"] == "0.00"
    unknown = found["other"]
    assert [unknown[name] for name in ("capacity_unit_hours", "capacity_cost", "unallocated_cost")] == [None] * 3
    assert (unknown["recorded_hours"], unknown["not_recorded_cost"]) == ("0.00", "3.00")
    # Nobody reads an unknown figure as 0 in the sum either.
    GpuClass.objects.filter(pk=a100.pk).update(slug="gone")
    CapacityInterval.objects.all().delete()
    assert capacity_of(client)["all"]["capacity_cost"] is None
    assert table(client.get(PAGE).text, "capacity by class")[-1][2] == "unknown"
    assert "capacity is not recorded" in client.get(PAGE).text


def test_the_number_seen_last_holds_until_now_if_it_was_seen_recently(a100: GpuClass, olga: User) -> None:
    cost(a100, "1.0000", OCTOBER)
    had(a100, 1, NOW - 3 * HOUR, NOW - timedelta(minutes=2))
    assert by_class(signed_in(olga))[a100.slug]["recorded_hours"] == "3.00"
    # A number that was just seen for the first time, and holds for no time yet, replaces it.
    CapacityInterval.objects.update(ends_at=NOW - timedelta(minutes=1))
    had(a100, 9, NOW - timedelta(minutes=1), NOW - timedelta(minutes=1))
    found = by_class(signed_in(olga))[a100.slug]
    assert (found["recorded_hours"], found["capacity_unit_hours"]) == ("3.00", "3.13")
    CapacityInterval.objects.filter(units=9).delete()
    CapacityInterval.objects.update(ends_at=NOW - timedelta(minutes=30))
    assert by_class(signed_in(olga))[a100.slug]["recorded_hours"] == "2.50"


def test_a_teams_report_has_none(team_a: Tenant, a100: GpuClass, alice: User) -> None:
    cost(a100, "1.0000", OCTOBER)
    had(a100, 1, NOW - 3 * HOUR, NOW)
    client = signed_in(alice)
    assert "capacity" not in client.get("/api/v1/teams/team-a/usage-report").json()
    assert "Unallocated" not in client.get("/teams/team-a/usage").text
