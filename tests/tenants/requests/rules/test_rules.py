"""Requests that a rule decides: decreases; and the switch that turns the rule off."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from django.test import Client
from django.utils import timezone

from accounts.core.actor import Actor
from accounts.models import Delivery, Event, User
from catalog.models import GpuClass
from portal.core.errors import Refused
from tenants.grants.promises import Promise
from tenants.models import Grant, QuotaRequest, Rule, Tenant
from tenants.requests import actions
from tenants.requests.rules import actions as rule_actions
from tenants.requests.rules import policy as rule_policy
from tenants.requests.types import RequestedLine
from tests.support.rows import make

NOW = timezone.now()


def page(user: User) -> Actor:
    return Actor(user=user, via="page")


def days(count: float) -> datetime:
    return NOW + timedelta(days=count)


@pytest.fixture(autouse=True)
def rule(db: None) -> Rule:
    """The rule as the migration creates it; a test that commits may have emptied the table."""
    return Rule.objects.update_or_create(name="decrease", defaults={"is_on": True})[0]


@pytest.fixture
def granted(team_a: Tenant, a100: GpuClass) -> Grant:
    GpuClass.objects.update(promise_limit=8)
    return make.grant(team_a, a100, units=4, since=days(-1), until=days(30))


def file(by: User, *lines: RequestedLine) -> QuotaRequest:
    return actions.file_request("team-a", lines=lines, justification="We need less.", by=page(by))


def in_force(team: Tenant) -> list[int]:
    return [grant.units for grant in Grant.objects.filter(tenant=team, period__contains=timezone.now())]


@pytest.mark.parametrize(
    ("units", "until", "kind", "expected"),
    [
        (2, 30, "base", True),
        (0, 30, "base", True),
        (4, 10, "base", True),
        (2, 31, "base", False),  # two units for a day that had no units before
        (5, 10, "base", False),
        (1, 10, "boost", False),
    ],
)
def test_what_is_nowhere_more_is_taken_back_at_once(
    granted: Grant, team_a: Tenant, alice: User, dana: User, units: int, until: float, kind: str, expected: bool
) -> None:
    filed = file(alice, RequestedLine(granted.gpu_class.slug, units, NOW, days(until), kind))
    line = filed.lines.get()
    assert (line.state, line.rule) == (("approved", "decrease") if expected else ("pending", ""))
    assert in_force(team_a) == ([units] if expected and units else [] if expected else [4])
    assert Event.objects.filter(verb="request.decided", actor="system rule decrease").exists() is expected
    assert Delivery.objects.filter(user=dana).exists() is not expected


def test_only_the_lines_that_give_back_are_decided(
    granted: Grant, team_a: Tenant, a100: GpuClass, alice: User, dana: User
) -> None:
    mig = make.gpu_class(a100.cluster, slug="mig", resource="nvidia.com/mig-1g.10gb", promise_limit=7)
    filed = file(alice, RequestedLine(a100.slug, 1, NOW, days(30)), RequestedLine("mig", 3, NOW, days(30)))
    assert {line.gpu_class: line.state for line in filed.lines.all()} == {a100: "approved", mig: "pending"}
    assert Delivery.objects.filter(user=dana).count() == 1
    client = Client()
    client.force_login(alice)
    assert "by rule decrease" in " ".join(client.get(f"/requests/{filed.pk}").content.decode().split())


def test_staff_turn_a_rule_off(granted: Grant, alice: User, olga: User) -> None:
    with pytest.raises(Refused, match="Only operators"):
        rule_actions.change_rule("decrease", is_on=False, by=page(alice))
    rule_actions.change_rule("decrease", is_on=False, by=page(olga))
    rule_actions.change_rule("decrease", is_on=False, by=page(olga))
    assert Event.objects.get(verb="rule.changed").after == {"is_on": False}
    filed = file(alice, RequestedLine(granted.gpu_class.slug, 2, NOW, days(30)))
    assert filed.lines.get().state == "pending"


def test_the_admin_turns_it_off_through_the_action(rule: Rule, olga: User) -> None:
    client = Client()
    make.administrator(client, olga)
    assert client.post(f"/admin/tenants/rule/{rule.pk}/change/", {}).status_code == 302
    rule.refresh_from_db()
    assert not rule.is_on
    assert Event.objects.filter(verb="rule.changed").count() == 1


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        ([(4, 0, 10)], True),
        ([(4, 0, 5), (2, 5, 10)], True),
        ([(4, 0, 5), (5, 5, 6)], False),
        ([(1, 9, 11)], False),
        ([(1, -1, 1)], False),
        ([], True),
    ],
)
def test_nowhere_more(after: list[tuple[int, float, float]], expected: bool) -> None:
    before = [Promise(4, days(0), days(10))]
    assert rule_policy.is_nowhere_more(before, [Promise(units, days(a), days(b)) for units, a, b in after]) is expected
