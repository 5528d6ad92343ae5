"""Increases that measured use justifies: by every interface, recorded as measured, never above the promise limit."""

from __future__ import annotations

import importlib
import io
import json
from collections.abc import Callable
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.core.management import call_command
from django.db import IntegrityError, transaction
from django.test import Client
from django.utils import timezone

from accounts.core.actor import Actor
from accounts.models import Delivery, Event, User
from catalog.models import GpuClass
from desk.inbox.evidence import usage_evidence
from portal.core.errors import Refused
from tenants.models import Grant, Namespace, QuotaLine, Rule, Tenant
from tenants.requests import actions
from tenants.requests.renewals import actions as renewal_actions
from tenants.requests.rules import actions as rule_actions
from tenants.requests.rules.models import BOUNDS
from tenants.requests.rules.policy import RULE_DEFAULTS, IncreaseBounds
from tenants.requests.types import RequestedLine
from tests.support.rows import make, running
from tests.usage.activity.test_team_activity import measured
from tests.usage.telemetry.rows import held_run
from usage.samples.models import UsageHour, UsageSample
from workloads.models import Run


def page(user: User) -> Actor:
    return Actor(user=user, via="page")


def days(count: float) -> datetime:
    return timezone.now() + timedelta(days=count)


@pytest.fixture(autouse=True)
def rule(db: None) -> Rule:
    """The rule, switched on; a test that commits may have emptied the table."""
    return Rule.objects.update_or_create(name="increase", defaults={"is_on": True, **asdict(IncreaseBounds())})[0]


@pytest.fixture
def held(team_a: Tenant, a100: GpuClass) -> Grant:
    GpuClass.objects.update(promise_limit=8)
    return make.grant(team_a, a100, units=4, since=days(-40), until=days(20))


@pytest.fixture
def used(held: Grant, team_a: Tenant, a100: GpuClass, alice: User) -> Grant:
    """Measured use of all units for 30 days, and a run that waits for more."""
    namespace = team_a.namespaces.get()
    top = timezone.now().replace(minute=0, second=0, microsecond=0)
    hours = [top - timedelta(hours=back) for back in range(30 * 24 + 1)]
    UsageHour.objects.bulk_create(UsageHour(cluster=a100.cluster, hour=at, minutes=60, last_minute=at) for at in hours)
    UsageSample.objects.bulk_create(
        UsageSample(namespace=namespace, gpu_class=a100, hour=at, units_max=4, units_sum=240, samples=60)
        for at in hours
    )
    running.workload(namespace, a100, by=alice)
    Run.objects.update(requested_at=days(-1))
    return held


def file(by: User, slug: str, *, units: int = 6, until: float = 30, kind: str = "base", **more: Any) -> QuotaLine:
    asked = RequestedLine(slug, units, timezone.now(), days(until), kind)
    filed = actions.file_request(
        "team-a", lines=[asked], justification="We need more.", by=page(by), **{"measure": usage_evidence, **more}
    )
    return filed.lines.get()


def test_more_is_granted_at_once_and_says_on_what(used: Grant, team_a: Tenant, alice: User, dana: User) -> None:
    line = file(alice, used.gpu_class.slug)
    assert (line.state, line.rule, line.decided_by, line.decided_units) == ("approved", "increase", None, 6)
    assert line.reason.startswith("Of 4 units, peak usage in the last 30 days was 4 and average usage 4, 100 %")
    kept = line.facts["rule"]
    assert kept["bounds"] == asdict(IncreaseBounds())
    assert {name: kept["facts"][name] for name in ("held", "base", "asked", "peak", "waited_share")} == {
        "held": 4,
        "base": 4,
        "asked": 6,
        "peak": 4,
        "waited_share": 1.0,
    }
    now = timezone.now()
    assert [grant.units for grant in Grant.objects.filter(tenant=team_a, period__contains=now)] == [6]
    assert Event.objects.get(verb="request.decided").actor == "system rule increase"
    assert not Delivery.objects.filter(user=dana).exists()
    assert Delivery.objects.filter(user=alice).count() == 1


def test_what_is_recorded_stays_when_staff_change_the_bounds(used: Grant, alice: User, olga: User) -> None:
    line = file(alice, used.gpu_class.slug)
    rule_actions.change_rule("increase", is_on=True, bounds=IncreaseBounds(growth_percent_max=10), by=page(olga))
    line.refresh_from_db()
    assert line.facts["rule"]["bounds"]["growth_percent_max"] == 50


@pytest.mark.parametrize(
    "changes",
    [{"units": 7}, {"until": 93}, {"kind": "boost", "units": 1}, {"measure": None}],
    ids=["too much", "too long", "a boost", "nobody measured"],
)
def test_beyond_it_people_decide(used: Grant, alice: User, dana: User, changes: dict[str, Any]) -> None:
    line = file(alice, used.gpu_class.slug, **changes)
    assert (line.state, line.rule) == ("pending", "")
    assert Delivery.objects.filter(user=dana).count() == 1


def test_what_nobody_looked_at_justifies_nothing(held: Grant, alice: User) -> None:
    assert file(alice, held.gpu_class.slug).state == "pending"


def test_the_promise_limit_is_never_passed(used: Grant, cluster: Any, alice: User, dana: User) -> None:
    GpuClass.objects.update(promise_limit=5)
    line = file(alice, used.gpu_class.slug)
    assert (line.state, line.rule, line.facts) == ("pending", "", {})
    assert list(Event.objects.values_list("verb", flat=True)) == ["request.filed"]
    assert Delivery.objects.filter(user=dana).count() == 1


def test_a_limit_that_nobody_knows_is_no_limit_kept(used: Grant, alice: User) -> None:
    GpuClass.objects.update(promise_limit=None)
    assert file(alice, used.gpu_class.slug).state == "pending"


def test_off_it_decides_nothing(used: Grant, alice: User, olga: User) -> None:
    rule_actions.change_rule("increase", is_on=False, by=page(olga))
    assert file(alice, used.gpu_class.slug).state == "pending"


@pytest.mark.parametrize(
    ("percent", "minutes", "state"), [(40, 60, "approved"), (39, 60, "pending"), (90, 47, "pending"), (0, 0, "pending")]
)
def test_gpus_that_were_held_have_to_be_busy(
    used: Grant, alice: User, olga: User, percent: int, minutes: int, state: str
) -> None:
    """Two held hours; in each the first `minutes` were measured. The facts are kept with the line."""
    rule_actions.change_rule("increase", is_on=True, bounds=IncreaseBounds(activity_percent_min=40), by=page(olga))
    hour = timezone.now().replace(minute=0, second=0, microsecond=0)
    namespace = Namespace.objects.get(tenant=used.tenant)
    run = held_run(namespace, used.gpu_class, alice, hour - timedelta(hours=2), hour, name="busy", units=4)
    for back in (1, 2) if minutes else ():
        measured(run, hour - timedelta(hours=back), minutes=minutes, percent=percent)
    line = file(alice, used.gpu_class.slug)
    assert line.state == state
    if state == "approved":
        kept = line.facts["rule"]
        assert (kept["facts"]["activity"], kept["facts"]["activity_seen_share"]) == (0.4, 1.0)
        assert kept["bounds"]["activity_percent_min"] == 40
        assert "mean activity of its GPUs was 40 %, measured for 100 % of what it held" in line.reason


def test_a_decrease_is_no_increase_when_that_rule_is_off(used: Grant, alice: User) -> None:
    Rule.objects.update_or_create(name="decrease", defaults={"is_on": False})
    assert file(alice, used.gpu_class.slug, units=3, until=10).state == "pending"


def test_lines_are_decided_one_by_one(used: Grant, team_a: Tenant, a100: GpuClass, alice: User, dana: User) -> None:
    mig = make.gpu_class(a100.cluster, slug="mig", resource="nvidia.com/mig-1g.10gb", promise_limit=7)
    now = timezone.now()
    lines = [RequestedLine("mig", 1, now, days(30)), RequestedLine(a100.slug, 5, now, days(30))]
    filed = actions.file_request("team-a", lines=lines, justification="Both.", by=page(alice), measure=usage_evidence)
    assert {line.gpu_class: line.rule for line in filed.lines.all()} == {mig: "", a100: "increase"}
    assert Delivery.objects.filter(user=dana).count() == 1


# ---- interfaces: page, API, renewal ------------------------------------------------------------------------------


def by_page(by: User, grant: Grant) -> None:
    client = Client()
    client.force_login(by)
    slug = grant.gpu_class.slug
    typed = {
        f"units-{slug}": "6",
        f"kind-{slug}": "base",
        "from_date": f"{timezone.localdate():%Y-%m-%d}",
        "until_date": f"{timezone.localdate() + timedelta(days=30):%Y-%m-%d}",
        "justification": "We need more.",
    }
    answer = client.post("/teams/team-a/requests/new", typed, follow=True)
    assert "A rule approved your request automatically" in answer.text


def by_api(by: User, grant: Grant) -> None:
    client = Client()
    client.force_login(by)
    body = {
        "team": "team-a",
        "justification": "We need more.",
        "lines": [{"gpu_class": grant.gpu_class.slug, "units": 6, "ends_at": days(30).isoformat()}],
    }
    answer: Any = client.post("/api/v1/requests", json.dumps(body), content_type="application/json")
    assert (answer.status_code, answer.json()["state"]) == (201, "approved")


def by_command(by: User, grant: Grant) -> None:
    until = f"{timezone.localdate() + timedelta(days=30):%Y-%m-%d}"
    words = ["--line", f"{grant.gpu_class.slug}=6", "--until", until, "--because", "More.", "--as", by.email]
    said = io.StringIO()
    call_command("quota", "file", "team-a", *words, stdout=said)
    assert "by rule increase" in said.getvalue()


def by_renewal(by: User, grant: Grant) -> None:
    client = Client()
    client.force_login(by)
    Grant.objects.update(period=(days(-40), days(1)))
    grant.refresh_from_db()
    Grant.objects.update(period=(days(-29), days(1)))
    answer = client.post(f"/teams/team-a/grants/{grant.pk}/renew", follow=True)
    assert "Renewed automatically by a rule." in answer.text


@pytest.mark.parametrize("door", [by_page, by_api, by_command, by_renewal])
def test_every_door_lets_the_rule_decide(used: Grant, alice: User, door: Callable[[User, Grant], None]) -> None:
    door(alice, used)
    line = QuotaLine.objects.get()
    assert (line.state, line.rule) == ("approved", "increase")
    assert set(line.facts["rule"]) == {"name", "facts", "bounds"}
    assert {"peak", "mean", "seen_share", "runs", "held"} <= set(line.facts)


def test_renewal_without_use_waits_for_people(held: Grant, alice: User) -> None:
    filed = renewal_actions.renew_grant("team-a", held.pk, by=page(alice), measure=usage_evidence)
    assert filed.lines.get().state == "pending"


# ---- bounds of the rule ------------------------------------------------------------------------------------------


def test_staff_change_bounds_in_the_admin_with_a_sentence_a_field(rule: Rule, olga: User, dana: User) -> None:
    client = Client()
    make.administrator(client, olga)
    path = f"/admin/tenants/rule/{rule.pk}/change/"
    assert "Maximum increase over the current total, in percent" in client.get(path).text
    typed = {**asdict(IncreaseBounds()), "is_on": "on", "growth_percent_max": 25, "activity_percent_min": 30}
    bad = client.post(path, {**typed, "units_max": 0, "seen_percent_min": 101}).text
    assert "The maximum total in units must be a whole number from 1 to 100,000, not 0." in bad
    assert "measured time in percent must be a whole number from 1 to 100, not 101." in bad
    assert client.post(path, typed).status_code == 302
    rule.refresh_from_db()
    assert (rule.growth_percent_max, rule.activity_percent_min, rule.is_on) == (25, 30, True)
    event = Event.objects.get(verb="rule.changed")
    assert event.before == {"growth_percent_max": 50, "activity_percent_min": 0}
    assert event.after == {"growth_percent_max": 25, "activity_percent_min": 30}
    with pytest.raises(Refused, match="Only operators"):
        rule_actions.change_rule("increase", is_on=False, by=page(dana))


def test_other_rules_have_no_bounds(olga: User) -> None:
    other = Rule.objects.update_or_create(name="starter", defaults={"is_on": True})[0]
    client = Client()
    make.administrator(client, olga)
    assert "growth_percent_max" not in client.get(f"/admin/tenants/rule/{other.pk}/change/").text


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("increase", {"units_max": None}),
        ("increase", {"activity_percent_min": None}),
        ("increase", {"peak_percent_min": 101}),
        ("increase", {"activity_percent_min": 101}),
        ("starter", {"units_max": 1}),
        ("starter", {"activity_percent_min": 0}),
    ],
)
def test_the_database_knows_possible_bounds(name: str, values: dict[str, Any]) -> None:
    Rule.objects.get_or_create(name="starter")
    with pytest.raises(IntegrityError, match="rule_bounds"), transaction.atomic():
        Rule.objects.filter(name=name).update(**values)


def test_what_is_shipped_is_what_the_code_says() -> None:
    shipped = {**importlib.import_module("tenants.migrations.0009_deputies").INCREASE, "activity_percent_min": 0}
    assert shipped == asdict(IncreaseBounds())
    assert tuple(shipped) == BOUNDS == importlib.import_module("tenants.migrations.0017_rule_activity").AFTER
    assert not RULE_DEFAULTS["increase"]
