"""The rules for new users: a trial while "starter" is on, a bundle with its team while "bundle" is on."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client

from accounts.models import Delivery, Event, User
from catalog.models import GpuClass
from portal.core.errors import Refused
from tenants.models import Bundle, Grant, Plan, QuotaRequest, Rule, TeamRequest, Tenant
from tenants.onboarding.bundles import actions as bundle_actions
from tenants.onboarding.team_requests import actions as team_request_actions
from tenants.onboarding.trials import actions as trial_actions
from tenants.requests.decisions import actions
from tenants.requests.decisions.types import Decision
from tests.support.http.pages import ask, page


def turn(name: str, *, is_on: bool) -> None:
    Rule.objects.update_or_create(name=name, defaults={"is_on": is_on})


def as_(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def limited(a100: GpuClass) -> GpuClass:
    GpuClass.objects.filter(pk=a100.pk).update(promise_limit=8, starter=True)
    a100.refresh_from_db()
    return a100


@pytest.fixture
def asked(limited: GpuClass, olga: User, dana: User, charlie: User, unique: str) -> TeamRequest:
    bundle_actions.put_bundle(name="Training", days=60, lines=[(limited.slug, 2)], by=page(olga))
    return ask(charlie, slug=f"robots-{unique}")


def test_no_trial_while_the_rule_is_off(limited: GpuClass, charlie: User) -> None:
    turn("starter", is_on=False)
    with pytest.raises(Refused, match="Trials are turned off") as refused:
        trial_actions.begin_trial(by=page(charlie))
    assert (refused.value.code, refused.value.refusal.status) == ("no_trial_now", 409)
    assert not Tenant.objects.exists()
    assert "Trials are turned off" in as_(charlie).get("/start").text
    answer: Any = as_(charlie).post("/api/v1/trials", "{}", content_type="application/json")
    assert (answer.status_code, answer.json()["code"]) == (409, "no_trial_now")
    turn("starter", is_on=True)
    trial_actions.begin_trial(by=page(charlie))
    assert Grant.objects.get().line is not None


def test_a_bundle_is_granted_with_its_team_and_keeps_which_rule_it_was(asked: TeamRequest, dana: User) -> None:
    turn("bundle", is_on=True)
    team_request_actions.decide_team(asked.pk, approve=True, by=page(dana))
    line = QuotaRequest.objects.get().lines.get()
    assert (line.state, line.decided_by) == ("approved", dana)
    assert line.facts["rule"] == {"name": "bundle", "bundle": "Training", "units": 2}


def test_while_the_rule_is_off_its_lines_wait_for_the_approvers(asked: TeamRequest, dana: User, charlie: User) -> None:
    turn("bundle", is_on=False)
    Delivery.objects.all().delete()
    team_request_actions.decide_team(asked.pk, approve=True, reason="Welcome.", by=page(dana))
    asked.refresh_from_db()
    request = QuotaRequest.objects.get()
    line = request.lines.get()
    assert asked.tenant == request.tenant
    assert (line.state, line.asked_units, line.decided_by, Grant.objects.count()) == ("pending", 2, None, 0)
    assert Plan.objects.get().request == request
    assert Event.objects.filter(verb="team.decided").count() == 1
    assert not Event.objects.filter(verb="request.decided").exists()
    assert [(one.user, one.subject) for one in Delivery.objects.all()] == [(charlie, "Your team Robots was created")]
    assert "approvers decide it as a request" in Delivery.objects.get().body
    assert Bundle.objects.get().name in Event.objects.get(verb="team.decided").after["bundle"]
    # Decided like any other request.
    actions.decide_request(request.pk, [Decision(line.pk, approve=True)], by=page(dana))
    assert Grant.objects.get().units == 2


def test_the_page_says_so_and_takes_no_units(asked: TeamRequest, dana: User, limited: GpuClass) -> None:
    on = as_(dana).get(f"/team-requests/{asked.pk}").text
    assert f'name="units-{limited.slug}"' in on
    turn("bundle", is_on=False)
    off = as_(dana).get(f"/team-requests/{asked.pk}").text
    assert f'name="units-{limited.slug}"' not in off
    assert "approvers decide the quota as a request" in off
    typed = {"decision": "approve", "slug": asked.slug, f"units-{limited.slug}": "1"}
    assert as_(dana).post(f"/team-requests/{asked.pk}/decide", typed).status_code == 302
    assert QuotaRequest.objects.get().lines.get().state == "pending"


def test_units_are_refused_by_the_api_while_it_is_off(asked: TeamRequest, dana: User, limited: GpuClass) -> None:
    turn("bundle", is_on=False)
    body = json.dumps({"approve": True, "units": {limited.slug: 1}})
    answer: Any = as_(dana).post(f"/api/v1/team-requests/{asked.pk}/decide", body, content_type="application/json")
    assert (answer.status_code, answer.json()["code"]) == (409, "rule_off")
    assert not Tenant.objects.exists()
