"""From rows to the page of the grants, the form and the API."""

from __future__ import annotations

import html
import re
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from accounts.models import User
from catalog.models import GpuClass
from tenants.models import Grant, Namespace, QuotaLine, QuotaRequest, Rule, Tenant
from tests.support.rows import make, running
from tests.support.rows.usage import looked, used
from tests.usage.right_size.test_queries import measured
from tests.usage.telemetry.rows import TIME_SLICED, held_run
from usage.right_size.quota.queries import activity_of_teams, smaller_totals
from usage.samples.models import UsageHour
from usage.samples.queries import PERIOD
from usage.telemetry.models import RunHour
from workloads.models import Run

SECOND, HOUR, DAY = timedelta(seconds=1), timedelta(hours=1), timedelta(days=1)
TITLE = "A smaller quota would be enough"
NOW = timezone.now()


def ago(days: float) -> datetime:
    return NOW - days * DAY


@pytest.fixture
def eight(a100: GpuClass, namespace_a: Namespace, team_a: Tenant) -> Grant:
    """Eight GPUs for more than 30 days, in which at most two were in use at once."""
    looked(a100)
    used(namespace_a, a100, peak=2, total=60, back=30)
    return make.grant(team_a, a100, units=8, since=ago(40), until=ago(-20))


def suggested(team: Tenant) -> list[tuple[str, int]]:
    return [(one.gpu_class, one.units) for one in smaller_totals(team)]


def test_a_team_that_uses_two_of_eight(
    eight: Grant, a100: GpuClass, namespace_a: Namespace, team_a: Tenant, alice: User
) -> None:
    now = timezone.now().replace(minute=0, second=0, microsecond=0)
    run = held_run(namespace_a, a100, alice, now - 4 * HOUR, now, units=2)
    for back in (1, 2, 3, 4):
        measured(run, now - back * HOUR, busy=1, memory_mib=1, total_mib=2)
    [found] = smaller_totals(team_a)
    assert (found.gpu_class, found.total, found.units) == (a100.slug, 8, 2)
    assert found.until == timezone.localdate(eight.period.upper)
    assert found.why == "In 30 days at most 2 of 8 GPUs were in use at the same time, and at most 1 of them was busy."


@pytest.mark.parametrize(
    "change",
    ["younger", "smaller before", "a gap", "pending", "reduction", "waits", "gave up", "unseen", "all in use", "over"],
)
def test_what_suggests_nothing(
    change: str, eight: Grant, a100: GpuClass, namespace_a: Namespace, team_a: Tenant, alice: User
) -> None:
    assert suggested(team_a) == [(a100.slug, 2)]
    if change == "younger":
        Grant.objects.update(period=(ago(29), ago(-20)))
    elif change == "smaller before":
        Grant.objects.update(period=(ago(10), ago(-20)))
        make.grant(team_a, a100, units=7, since=ago(40), until=ago(10))
    elif change == "a gap":
        Grant.objects.update(period=(ago(10), ago(-20)))
        make.grant(team_a, a100, units=8, since=ago(40), until=ago(10) - 2 * SECOND)
    elif change in ("pending", "reduction"):
        request = QuotaRequest.objects.create(tenant=team_a, filed_by=alice, justification="More.")
        kind = QuotaLine.Kind.BASE if change == "pending" else QuotaLine.Kind.RECLAIM
        QuotaLine.objects.create(
            request=request, tenant=team_a, gpu_class=a100, kind=kind, asked_units=4, asked_from=ago(-10),
            asked_until=ago(-20),
        )  # fmt: skip
    elif change in ("waits", "gave up"):
        workload = running.workload(namespace_a, a100, by=alice, units=8)
        ended = {"ended_at": ago(0), "outcome": "stopped"} if change == "gave up" else {}
        Run.objects.filter(workload=workload).update(requested_at=ago(1), admitted_at=None, started_at=None, **ended)
    elif change == "unseen":
        UsageHour.objects.filter(hour__lt=ago(20)).delete()
    elif change == "all in use":
        used(namespace_a, a100, peak=8, total=60, back=3)
    else:
        Grant.objects.update(period=(ago(40), ago(1)))
    assert suggested(team_a) == []


def test_what_does_not_hinder_it(
    eight: Grant, a100: GpuClass, namespace_a: Namespace, team_a: Tenant, alice: User
) -> None:
    """A larger total until the instant before, a temporary increase, a request for another class, and a run that was
    stopped at once.
    """
    Grant.objects.update(period=(ago(10), ago(-20)))
    make.grant(team_a, a100, units=12, since=ago(40), until=ago(10) - timedelta(microseconds=1))
    make.grant(team_a, a100, units=4, kind=Grant.Kind.BOOST)
    other = make.gpu_class(a100.cluster, slug="other", resource="example.com/other")
    request = QuotaRequest.objects.create(tenant=team_a, filed_by=alice, justification="More.")
    QuotaLine.objects.create(
        request=request, tenant=team_a, gpu_class=other, kind="base", asked_units=4, asked_from=ago(0),
        asked_until=ago(-20),
    )  # fmt: skip
    workload = running.workload(namespace_a, a100, by=alice, units=8)
    Run.objects.filter(workload=workload).update(
        requested_at=ago(1), ended_at=ago(1) + 59 * SECOND, outcome="stopped", admitted_at=None, started_at=None
    )
    assert suggested(team_a) == [(a100.slug, 2)]


def test_from_the_page_to_the_request(eight: Grant, team_a: Tenant, client: Client, alice: User) -> None:
    """The rule for smaller totals decides it at once, because the link names the day on which the total expires."""
    Rule.objects.update_or_create(name="decrease", defaults={"is_on": True})
    end = timezone.localtime(eight.period.upper).replace(hour=23, minute=59, second=59, microsecond=999_999)
    Grant.objects.update(period=(eight.period.lower, end))
    client.force_login(alice)
    page = client.get("/teams/team-a/grants").text
    assert TITLE in page
    [href] = re.findall(r'href="(/teams/team-a/requests/new\?class=[^"]*)"', page)
    form = client.get(html.unescape(href)).text
    assert re.search(r'name="units-a100[^"]*"[^>]* value="2"', form)
    assert "8 → 2 GPUs" in form
    dates = dict(re.findall(r'name="(from_date|until_date)" value="([^"]*)"', form))
    assert dates["until_date"] == f"{end:%Y-%m-%d}"
    [text] = re.findall(r"<textarea[^>]*>\s*([^<]*)</textarea>", form)
    assert text == "In 30 days at most 2 of 8 GPUs were in use at the same time."
    typed = {f"units-{eight.gpu_class.slug}": 2, "justification": text, **dates}
    assert client.post("/teams/team-a/requests/new", typed).status_code == 302
    line = QuotaLine.objects.get()
    assert (line.state, line.rule, line.decided_units) == ("approved", "decrease", 2)
    assert TITLE not in client.get("/teams/team-a/grants").text


def test_only_those_who_may_request_see_it(eight: Grant, client: Client, bob: User, olga: User) -> None:
    for person in (bob, olga):
        client.force_login(person)
        assert TITLE not in client.get("/teams/team-a/grants").text


def test_the_number_of_queries_does_not_grow(
    eight: Grant, a100: GpuClass, team_a: Tenant, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    with django_assert_num_queries(9):
        assert len(smaller_totals(team_a)) == 1
    for number in range(3):
        one = make.gpu_class(a100.cluster, slug=f"more-{number}", resource=f"example.com/{number}")
        make.grant(team_a, one, units=4, since=ago(40), until=ago(-20))
        used(team_a.namespaces.get(), one, peak=1, total=60)
    with django_assert_num_queries(9):
        assert len(smaller_totals(team_a)) == 4


def test_a_team_without_quota_costs_one_query(
    team_a: Tenant, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    with django_assert_num_queries(1):
        assert smaller_totals(team_a) == []


# ---- how busy it was ---------------------------------------------------------------------------------------------


def activity(team: Tenant, *classes: GpuClass) -> dict[int, tuple[Any, ...]]:
    at = timezone.now()
    found = activity_of_teams([team.pk], [one.pk for one in classes], since=at - PERIOD, at=at)
    return {
        pk: (round(one.held, 2), one.measured, round(one.busy, 3), one.busy_units_max) for (_, pk), one in found.items()
    }


def test_activity_is_a_share_of_what_was_held(
    a100: GpuClass, namespace_a: Namespace, team_a: Tenant, alice: User, client: Client
) -> None:
    now = timezone.now().replace(minute=0, second=0, microsecond=0)
    first = held_run(namespace_a, a100, alice, now - 4 * HOUR, now, units=2)
    second = held_run(namespace_a, a100, alice, now - 2 * HOUR, now)
    measured(first, now - 2 * HOUR, busy=2, memory_mib=1, total_mib=2, activity=50)
    measured(second, now - 2 * HOUR, busy=1, memory_mib=1, total_mib=2, activity=20)
    measured(second, now - HOUR, busy=1, memory_mib=1, total_mib=2, activity=0)
    # 2 × 4 + 1 × 2 held; 2 + 1 + 1 measured; 2 × 0.5 + 0.2 busy; three of them in the same hour.
    assert activity(team_a, a100) == {a100.pk: (10.0, 4.0, 1.2, 3)}
    assert activity(make.tenant(a100.cluster, slug="team-b"), a100) == {}


def test_what_is_older_or_shared_is_not_in_it(
    a100: GpuClass, namespace_a: Namespace, team_a: Tenant, alice: User
) -> None:
    shared = make.gpu_class(a100.cluster, slug="shared", resource="nvidia.com/gpu.shared", **TIME_SLICED)
    now = timezone.now().replace(minute=0, second=0, microsecond=0)
    run = held_run(namespace_a, shared, alice, now - 4 * HOUR, now)
    measured(run, now - 2 * HOUR, busy=1, memory_mib=1, total_mib=2, activity=50)
    RunHour.objects.update(measure="shared")
    old = held_run(namespace_a, a100, alice, now - 32 * DAY, now - 31 * DAY)
    measured(old, now - 32 * DAY, busy=1, memory_mib=1, total_mib=2, activity=50)
    assert activity(team_a, a100, shared) == {shared.pk: (4.0, 0.0, 0.0, 0)}
