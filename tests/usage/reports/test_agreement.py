"""Page, API and CSV of a month have the same figures, to the cent, as a recomputation from the rows."""

from __future__ import annotations

import csv
import html
import io
import re
from collections.abc import Iterable
from datetime import datetime
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pytest
from django.test import Client

from accounts.models import User
from catalog.models import GpuClass
from cluster.models import Cluster
from tenants.models import Tenant
from tests.usage.reports import october
from tests.usage.reports.october import NOVEMBER, NOW, OCTOBER, SEPTEMBER, Figures, Key, expected, sums
from usage.reports import queries

pytestmark = pytest.mark.django_db
FIELDS = ("unit_hours", "gpu_hours", "cost")


@pytest.fixture
def team_b(
    settings: Any, monkeypatch: pytest.MonkeyPatch, cluster: Cluster, team_a: Tenant, a100: GpuClass,
    alice: User, bob: User,
) -> Tenant:  # fmt: skip
    settings.TIME_ZONE = "Europe/Berlin"
    monkeypatch.setattr(queries, "timezone", SimpleNamespace(now=lambda: NOW))
    return october.october(cluster, team_a, a100, alice, bob)


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def of_rows(rows: Iterable[dict[str, str]], gpu_class: str) -> dict[Key, Figures]:
    """Of a line of the API or the CSV."""
    found = {}
    for row in rows:
        unit_hours, gpu_hours, cost = (Decimal(row[name]) for name in FIELDS)
        found[row["team"], row["email"], row[gpu_class], row["priority"]] = (unit_hours, gpu_hours, cost)
    return found


def table(page: str, label: str) -> list[list[str]]:
    """Rows of the table, each with the texts of its cells; what stands below a text in small letters is left out."""
    found = page.split(f'aria-label="Table of {label}"')[1].split("<tbody>")[1].split("</tbody>")[0]
    rows = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.S) for row in re.findall(r"<tr>(.*?)</tr>", found, re.S)]

    def said(cell: str) -> str:
        return html.unescape(re.sub(r"<[^>]*>", "", cell.split('<span class="sub')[0])).strip()

    return [[said(cell) for cell in row] for row in rows]


def check(page: str, report: dict[str, Any], text: str, lines: dict[Key, Figures]) -> None:
    """The API and the CSV have these lines, and totals that are their sums; the page has the same totals by class."""
    assert of_rows(report["lines"], "gpu_class") == lines
    assert of_rows(csv.DictReader(io.StringIO(text)), "class") == lines
    totals, whole = report["totals"], sums(lines, lambda _key: "")[""]
    assert (Decimal(totals["all"]["gpu_hours"]), Decimal(totals["all"]["cost"])) == whole
    for part, name, key in (("teams", "team", 0), ("people", "email", 1), ("classes", "gpu_class", 2)):
        said = {one[name]: (Decimal(one["gpu_hours"]), Decimal(one["cost"])) for one in totals[part]}
        assert said == sums(lines, lambda one, key=key: one[key]), part  # type: ignore[misc]
    classes = {one["class_name"]: [one["unit_hours"], one["gpu_hours"], one["cost"]] for one in totals["classes"]}
    *shown, total = table(page, "totals by class")
    # Two classes have the name that make.gpu_class gives.
    assert sorted(row[1:] for row in shown) == sorted(
        [one["unit_hours"], one["gpu_hours"], one["cost"], "not measured"] for one in totals["classes"]
    )
    assert {row[0] for row in shown} == set(classes)
    assert total[2:] == [*(str(one) for one in whole), "not measured"]


def test_of_a_team(team_b: Tenant, team_a: Tenant, alice: User) -> None:
    lines, client = expected(OCTOBER, NOVEMBER, team="team-a"), signed_in(alice)
    assert len(lines) == 7
    page = client.get("/teams/team-a/usage").text
    report = client.get("/api/v1/teams/team-a/usage-report").json()
    text = client.get("/teams/team-a/usage.csv").text
    assert client.get("/api/v1/teams/team-a/usage-report.csv").text == text
    check(page, report, text, lines)
    *shown, total = table(page, "usage by person, class and priority")
    emails = {"Alice": "alice@example.org", "Bob": "bob@example.org", "Pods outside the portal": ""}
    priorities = {"none": ""}
    assert {
        ("team-a", emails[row[0]], row[1], priorities.get(row[2], row[2])): tuple(map(Decimal, row[3:6]))
        for row in shown
    } == lines
    assert total[4:] == [*(str(one) for one in sums(lines, lambda _key: "")[""]), "not measured"]
    people = sums(lines, lambda one: one[1])
    assert {emails[row[0]]: tuple(map(Decimal, row[1:3])) for row in table(page, "totals by person")} == people


def test_of_all_teams(team_b: Tenant, olga: User) -> None:
    lines, client = expected(OCTOBER, NOVEMBER), signed_in(olga)
    assert len(lines) == 8
    page = client.get("/operators/usage?month=2026-10").text
    report = client.get("/api/v1/operators/usage-report?month=2026-10").json()
    text = client.get("/operators/usage.csv?month=2026-10").text
    assert client.get("/api/v1/operators/usage-report.csv?month=2026-10").text == text
    check(page, report, text, lines)
    *shown, total = table(page, "totals by team")
    slugs = {"Team A": "team-a", "Team B": "team-b"}
    teams = sums(lines, lambda one: one[0])
    assert {slugs[row[0]]: tuple(map(Decimal, row[1:3])) for row in shown} == teams
    assert total[1:] == [*(str(one) for one in sums(lines, lambda _key: "")[""]), "not measured"]
    assert {row[-1] for row in shown} == {"not measured"}
    assert 'href="/teams/team-b/usage?month=2026-10"' in page


def test_a_month_that_is_over_ends_at_its_end(team_b: Tenant, olga: User, monkeypatch: pytest.MonkeyPatch) -> None:
    later = NOVEMBER + 3 * october.HOUR
    client = signed_in(olga)
    for now, month, since, until in ((NOW, "2026-09", SEPTEMBER, OCTOBER), (later, "2026-10", OCTOBER, NOVEMBER)):
        monkeypatch.setattr(queries, "timezone", SimpleNamespace(now=lambda now=now: now))
        report = client.get(f"/api/v1/operators/usage-report?month={month}").json()
        lines = expected(since, until, now=now)
        assert of_rows(report["lines"], "gpu_class") == lines != {}
        assert report["month"] == month
        assert [datetime.fromisoformat(report[name]) for name in ("since", "until", "as_of")] == [since, until, now]


def test_figures_that_can_be_computed_by_hand(team_b: Tenant, a100: GpuClass, olga: User) -> None:
    found = of_rows(signed_in(olga).get("/api/v1/operators/usage-report").json()["lines"], "gpu_class")
    alice, bob = "alice@example.org", "bob@example.org"
    # 3 slices for 50 minutes of the month; the hours before it do not count.
    assert found["team-a", bob, "slice", "interactive"] == (Decimal("2.50"), Decimal("0.36"), Decimal("0.83"))
    # From 22:00 summer time to 05:00 winter time are eight hours; the hour before the month does not count.
    assert found["team-a", bob, a100.slug, "interactive"] == (Decimal("8.00"), Decimal("8.00"), Decimal("24.89"))
    # Half a cent is a cent.
    assert found["team-a", bob, "old", "interactive"] == (Decimal("0.50"), Decimal("0.25"), Decimal("0.01"))
    # 8 units for 3/7 of an hour.
    assert found["team-a", alice, a100.slug, "batch"] == (Decimal("3.43"), Decimal("3.43"), Decimal("10.67"))
    # 7 h 13 s at 2.40 and an hour at 3.1111.
    assert found["team-a", alice, a100.slug, "interactive"] == (Decimal("8.00"), Decimal("8.00"), Decimal("19.92"))
    # It holds one slice since 5 h 1 min 0 s.
    assert found["team-a", alice, "slice", "production"] == (Decimal("5.02"), Decimal("0.72"), Decimal("1.67"))
    # Two units for 77 minutes.
    assert found["team-a", "", a100.slug, ""] == (Decimal("2.57"), Decimal("2.57"), Decimal("6.16"))


def test_lines_are_marked_that_are_not_exact(team_b: Tenant, alice: User, a100: GpuClass) -> None:
    client = signed_in(alice)
    report = client.get("/api/v1/teams/team-a/usage-report").json()
    assert [one["person"] for one in report["lines"] if not one["is_exact"]] == ["Alice", "Pods outside the portal"]
    assert [one["gpu_class"] for one in report["totals"]["classes"] if not one["is_exact"]] == [a100.slug]
    assert report["totals"]["all"]["is_exact"] is False
    rows = csv.DictReader(io.StringIO(client.get("/teams/team-a/usage.csv").text))
    assert [row["person"] for row in rows if row["is_exact"] == "no"] == ["Alice", "Pods outside the portal"]
    lines = client.get("/teams/team-a/usage").text.split('id="lines"')[1].split("</table>")[0]
    assert lines.count("includes times that are not exact") == 2


def test_the_highest_cost_comes_first(team_b: Tenant, olga: User) -> None:
    client = signed_in(olga)
    report = client.get("/api/v1/operators/usage-report").json()
    for rows in (report["lines"], *(report["totals"][part] for part in ("teams", "classes", "people"))):
        costs = [Decimal(one["cost"]) for one in rows]
        assert costs == sorted(costs, reverse=True)
    assert [row[0] for row in table(client.get("/operators/usage").text, "totals by team")] == [
        "Team A",
        "Team B",
        "All teams",
    ]
