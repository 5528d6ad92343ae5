"""Budgets: who sets them, what they do to launches, who can allow launches beyond them, and the forecast."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from accounts.api_tokens import actions as token_actions
from accounts.core.actor import Actor
from accounts.models import Event, User
from catalog.models import GpuClass, Image
from portal.core.errors import Refused
from tenants.models import Membership, Tenant
from tests.support.rows import make, running
from tests.support.rows.usage import budget
from tests.workloads.launch.facts import TEAM
from workloads.budgets import actions, policy
from workloads.budgets.forecast import forecast, forecast_basis
from workloads.core.policy import BudgetFacts, budget_note, budget_refusal
from workloads.launch import actions as launch_actions
from workloads.launch.types import LaunchSpec
from workloads.models import Run, TeamBudget, Workload
from workloads.runs import restart

pytestmark = pytest.mark.django_db
UNTIL = datetime(2026, 12, 1, tzinfo=UTC)
NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def with_token(user: User, *scopes: str) -> Client:
    _row, text = token_actions.create_token(
        name="ci", scopes=list(scopes), expires_in_days=30, by=Actor(user=user, via="page")
    )
    return Client(headers={"authorization": f"Bearer {text}"})


def wanted(a100: GpuClass, name: str) -> LaunchSpec:
    return LaunchSpec(name=name, kind="job", gpu_class=a100.slug, units=1, image="python")


@pytest.fixture
def team(team_a: Tenant, a100: GpuClass, images: list[Image]) -> Tenant:
    make.grant(team_a, a100, units=8)
    return team_a


# ---- the rule ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cost", "at_limit", "is_confirmed", "code"),
    [
        ("99.99", "stop", False, ""),
        ("100.00", "stop", False, "budget_used_up"),
        ("100.00", "stop", True, "budget_used_up"),
        ("250.00", "confirm", False, "budget_unconfirmed"),
        ("250.00", "confirm", True, ""),
        ("250.00", "tell", False, ""),
    ],
)
def test_what_happens_at_100_percent(cost: str, at_limit: str, is_confirmed: bool, code: str) -> None:
    facts = BudgetFacts(Decimal("100.00"), Decimal(cost), at_limit, is_confirmed, UNTIL)
    found = budget_refusal(replace(TEAM, budget=facts))
    assert (found.code if found else "") == code
    if found is not None:
        # The figures, and what to do.
        assert all(text in found.message for text in ("Team A", cost, "100.00"))
        assert ("01 Dec 2026, 00:00 UTC" in found.message) is (at_limit == "stop")
        assert "operator" in found.message or "owner" in found.message


@pytest.mark.parametrize(("cost", "is_told"), [("79.99", False), ("80.00", True), ("120.00", True)])
def test_launchers_are_told_from_80_percent_on(cost: str, is_told: bool) -> None:
    facts = BudgetFacts(Decimal("100.00"), Decimal(cost), "tell", False, UNTIL)
    assert (cost in budget_note(replace(TEAM, budget=facts))) is is_told
    assert budget_note(TEAM) == ""


# ---- launches ----------------------------------------------------------------------------------------------------


def refused(verb: Any, *args: Any, **values: Any) -> str:
    with pytest.raises(Refused) as found:
        verb(*args, **values)
    return found.value.code


def test_nothing_starts_beyond_it_in_any_way(team: Tenant, a100: GpuClass, alice: User, by_alice: Actor) -> None:
    namespace = team.namespaces.get()
    over = running.workload(namespace, a100, name="over", by=alice, kind="job", image="python")
    over.runs.update(ended_at=timezone.now(), outcome="succeeded")
    running.workload(namespace, a100, name="runs", by=alice, kind="job", image="python")
    budget(team, cost="100", at_limit="stop")
    runs = Run.objects.count()
    assert refused(launch_actions.launch, "team-a", wanted(a100, "one"), by=by_alice) == "budget_used_up"
    assert refused(launch_actions.start, "team-a", "over", by=by_alice) == "budget_used_up"
    # It would stop what runs and then start nothing.
    assert refused(restart.restart, "team-a", "runs", by=by_alice) == "budget_used_up"
    assert Run.objects.get(workload__name="runs").stop_requested_at is None
    ci = with_token(alice, "launch")
    body = {"name": "one", "kind": "job", "gpu_class": a100.slug, "units": 1, "image": "python"}
    answer = ci.post("/api/v1/workloads", body, content_type="application/json")
    assert (answer.status_code, answer.json()["code"]) == (409, "budget_used_up")
    answer = ci.post("/api/v1/workloads/over/runs", {}, content_type="application/json")
    assert (answer.status_code, answer.json()["code"]) == (409, "budget_used_up")
    assert (Run.objects.count(), Workload.objects.filter(name="one").exists()) == (runs, False)
    # What is declared starts nothing.
    launch_actions.declare("team-a", wanted(a100, "later"), by=by_alice)


def test_a_figure_of_another_month_stops_nothing(team: Tenant, a100: GpuClass, by_alice: Actor) -> None:
    found = budget(team, cost="100", at_limit="stop", at=timezone.now() - timedelta(days=32))
    launch_actions.launch("team-a", wanted(a100, "one"), by=by_alice)
    TeamBudget.objects.filter(pk=found.pk).update(month_until=timezone.now() + timedelta(hours=1))
    assert refused(launch_actions.launch, "team-a", wanted(a100, "two"), by=by_alice) == "budget_used_up"


def test_the_budget_of_another_team_stops_nothing(team: Tenant, a100: GpuClass, by_alice: Actor, cluster: Any) -> None:
    budget(make.tenant(cluster, slug="team-b"), cost="100", at_limit="stop")
    launch_actions.launch("team-a", wanted(a100, "one"), by=by_alice)


def test_the_launch_form_says_it(team: Tenant, alice: User) -> None:
    found = budget(team, cost="79")
    client = signed_in(alice)
    assert "of its budget" not in client.get("/teams/team-a/launch").text
    TeamBudget.objects.filter(pk=found.pk).update(cost=85)
    assert "has used 85.00 of its budget of 100.00" in client.get("/teams/team-a/launch").text
    TeamBudget.objects.filter(pk=found.pk).update(cost=101, at_limit="stop")
    page = client.get("/teams/team-a/launch").text
    assert "Nothing starts until" in page
    assert 'href="/teams/team-a/usage"' in page


# ---- confirmation ------------------------------------------------------------------------------------------------


def test_an_owner_confirms_for_the_rest_of_the_month(
    team: Tenant, a100: GpuClass, alice: User, bob: User, by_alice: Actor
) -> None:
    """Alice is an owner, Bob a member."""
    budget(team, cost="100", at_limit="confirm")
    assert Membership.objects.get(user=alice).role == Membership.Role.OWNER
    assert refused(launch_actions.launch, "team-a", wanted(a100, "one"), by=by_alice) == "budget_unconfirmed"
    assert refused(actions.confirm_launches, "team-a", by=Actor(bob, "page")) == "not_allowed"
    # What launches cannot allow its own launches.
    program = Actor(alice, "token x", scopes=frozenset({"launch"}))
    assert refused(actions.confirm_launches, "team-a", by=program) == "missing_scope"
    answer = with_token(alice, "launch").post("/api/v1/teams/team-a/budget/confirm")
    assert (answer.status_code, answer.json()["code"]) == (403, "missing_scope")
    page = signed_in(alice).get("/teams/team-a/usage").text
    assert 'action="/teams/team-a/budget/confirm"' in page
    assert 'action="/teams/team-a/budget/confirm"' not in signed_in(bob).get("/teams/team-a/usage").text
    assert signed_in(alice).post("/teams/team-a/budget/confirm").status_code == 302
    actions.confirm_launches("team-a", by=by_alice)
    [event] = Event.objects.filter(verb="budget.confirmed")
    assert (event.actor_id, event.tenant) == (alice.pk, "team-a")
    launch_actions.launch("team-a", wanted(a100, "one"), by=Actor(bob, "page"))
    assert "Alice confirmed launches" in signed_in(bob).get("/teams/team-a/usage").text


@pytest.mark.parametrize(("cost", "at_limit"), [("99", "confirm"), ("100", "tell"), ("100", "stop")])
def test_where_nothing_waits_for_a_confirmation_there_is_none(
    team: Tenant, by_alice: Actor, cost: str, at_limit: str
) -> None:
    budget(team, cost=cost, at_limit=at_limit)
    assert refused(actions.confirm_launches, "team-a", by=by_alice) == "nothing_to_confirm"


# ---- set by staff ------------------------------------------------------------------------------------------------


def test_operators_set_it_and_nobody_else(team: Tenant, alice: User, olga: User) -> None:
    for person, status in ((olga, 302), (alice, 403)):
        sent = signed_in(person).post("/teams/team-a/budget", {"amount": "250.50", "at_limit": "confirm"})
        assert sent.status_code == status
    [row] = TeamBudget.objects.all()
    assert (row.tenant, str(row.amount), row.at_limit) == (team, "250.50", "confirm")
    assert 'action="/teams/team-a/budget"' in signed_in(olga).get("/teams/team-a/usage").text
    assert 'action="/teams/team-a/budget"' not in signed_in(alice).get("/teams/team-a/usage").text
    signed_in(olga).post("/teams/team-a/budget", {"amount": "", "at_limit": "tell"})
    assert not TeamBudget.objects.exists()
    assert [one.verb for one in Event.objects.filter(verb__startswith="budget.").order_by("pk")] == [
        "budget.set", "budget.removed",
    ]  # fmt: skip


@pytest.mark.parametrize("amount", ["0", "-1", "x", "1.001"])
def test_what_is_no_budget_is_refused(team: Tenant, olga: User, amount: str) -> None:
    answer = signed_in(olga).post("/teams/team-a/budget", {"amount": amount, "at_limit": "tell"})
    assert answer.status_code == 422
    assert not TeamBudget.objects.exists()


def test_the_same_again_is_no_event_and_another_amount_ends_a_confirmation(
    team: Tenant, olga: User, by_alice: Actor
) -> None:
    budget(team, cost="100", at_limit="confirm", told_percent=100)
    actions.confirm_launches("team-a", by=by_alice)
    by = Actor(olga, "page")
    actions.set_budget("team-a", amount=Decimal(100), at_limit="confirm", by=by)
    assert not Event.objects.filter(verb="budget.set").exists()
    assert TeamBudget.objects.get().confirmed_at is not None
    actions.set_budget("team-a", amount=Decimal(180), at_limit="confirm", by=by)
    row = TeamBudget.objects.get()
    # Of 180, only half is reached: owners are told of 80 and 100 % again.
    assert (row.confirmed_at, row.confirmed_by, row.told_percent) == (None, None, 50)


def test_the_api_shows_sets_and_removes_it(team: Tenant, alice: User, olga: User) -> None:
    call = "/api/v1/teams/team-a/budget"
    reads, sets = with_token(alice, "read"), signed_in(olga)
    assert [reads.get(call).json()[name] for name in ("amount", "cost", "forecast", "refusal")] == [
        None,
        None,
        None,
        "",
    ]
    answer = sets.put(call, {"amount": "40.00", "at_limit": "stop"}, content_type="application/json")
    assert (answer.status_code, answer.json()["amount"], answer.json()["cost"]) == (200, "40.00", None)
    known = TeamBudget.objects.get()
    TeamBudget.objects.all().delete()
    budget(team, amount=str(known.amount), cost="50.01", at_limit="stop")
    found = reads.get(call).json()
    assert (found["cost"], found["percent"], found["at_limit"]) == ("50.01", 125, "stop")
    assert "Nothing starts until" in found["refusal"]
    assert sets.delete(call).status_code == 204
    assert reads.get(call).json()["amount"] is None
    answer = sets.put(call, {"amount": "0", "at_limit": "stop"}, content_type="application/json")
    assert (answer.status_code, answer.json()["code"], answer.json()["field"]) == (422, "bad_budget", "amount")
    answer = sets.put(call, {"amount": "1", "at_limit": "explode"}, content_type="application/json")
    assert (answer.status_code, answer.json()["code"], answer.json()["field"]) == (422, "bad_budget", "at_limit")


# ---- forecast ----------------------------------------------------------------------------------------------------


def row(**fields: Any) -> TeamBudget:
    values = {"cost": Decimal("70.00"), "measured_at": NOON, "month_until": UNTIL}
    return TeamBudget(amount=Decimal(100), **{**values, **fields})


def test_the_mean_of_the_last_days_goes_on_to_the_end_of_the_month() -> None:
    found = row(recent_cost=Decimal("14.00"), recent_since=NOON - timedelta(days=7))
    # 2 a day, for nine days and a half.
    assert forecast(found) == Decimal("89.00")
    assert "2.00 a day, the mean of the last 7 days" in forecast_basis(found)
    young = row(recent_cost=Decimal("14.00"), recent_since=NOON - timedelta(days=2))
    assert forecast(young) == Decimal("136.50")
    assert "7.00 a day, the mean of the last 2 days" in forecast_basis(young)
    idle = row(recent_cost=Decimal(0), recent_since=NOON - timedelta(days=7))
    assert forecast(idle) == Decimal("70.00")


@pytest.mark.parametrize("since", [None, NOON - timedelta(hours=23, minutes=59)])
def test_with_less_than_a_day_it_is_unknown(since: datetime | None) -> None:
    found = row(recent_cost=Decimal("14.00"), recent_since=since)
    assert forecast(found) is None
    assert forecast_basis(found).startswith("Unknown")


@pytest.mark.parametrize(("cost", "percent"), [("49.99", 0), ("50", 50), ("80", 80), ("99.99", 80), ("100", 100)])
def test_the_highest_threshold_that_is_reached(cost: str, percent: int) -> None:
    assert policy.reached(Decimal(cost), Decimal(100)) == percent
