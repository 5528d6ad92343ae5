"""The approver sets how long workloads run on after a grant ends: by page, API and command, stored and shown."""

from __future__ import annotations

import io
import json
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import IntegrityError, transaction
from django.test import Client
from django.utils import timezone

from accounts.core.actor import Actor
from accounts.models import Event, User
from catalog.models import GpuClass
from portal.core.errors import Refused
from tenants.models import GRACE, GRACE_MAX, Grant, QuotaLine, QuotaRequest, Tenant
from tenants.requests import actions
from tenants.requests.decisions import actions as decision_actions
from tenants.requests.decisions import policy as decision_policy
from tenants.requests.decisions.types import Decision
from tenants.requests.types import RequestedLine

HOUR = timedelta(hours=1)


@pytest.fixture
def line(team_a: Tenant, a100: GpuClass, alice: User) -> QuotaLine:
    GpuClass.objects.update(promise_limit=8)
    now = timezone.now()
    asked = RequestedLine(a100.slug, 2, now, now + timedelta(days=30))
    filed = actions.file_request("team-a", lines=[asked], justification="x", by=Actor(alice, "page"))
    return filed.lines.get()


def signed_in(who: User) -> Client:
    client = Client()
    client.force_login(who)
    return client


def text(response: Any) -> str:
    return " ".join(response.content.decode().split())


def typed(line: QuotaLine, **changes: str) -> dict[str, str]:
    return {
        "decision": "approve",
        f"units-{line.pk}": str(line.asked_units),
        f"from-{line.pk}": f"{timezone.localdate(line.asked_from):%Y-%m-%d}",
        f"until-{line.pk}": f"{timezone.localdate(line.asked_until):%Y-%m-%d}",
        **changes,
    }


def kept(line: QuotaLine) -> tuple[timedelta | None, timedelta]:
    line.refresh_from_db()
    return line.decided_grace, Grant.objects.get().grace


@pytest.mark.parametrize(("hours", "code"), [(None, ""), (0, ""), (336, ""), (-1, "bad_grace"), (337, "bad_grace")])
def test_bounds(hours: int | None, code: str) -> None:
    found = decision_policy.grace_refusal(hours)
    assert (found.code if found else "") == code
    assert timedelta(hours=decision_policy.GRACE_HOURS_MAX) == GRACE_MAX


def test_by_page(line: QuotaLine, alice: User, dana: User) -> None:
    client, path = signed_in(dana), f"/requests/{line.request_id}"
    assert f'name="grace-{line.pk}" inputmode="numeric" value="24"' in text(client.get(path))
    refused = client.post(f"{path}/decide", typed(line, **{f"grace-{line.pk}": "337"}))
    assert refused.status_code == 422
    assert "Enter a grace period of 0 to 336 hours (14 days)." in text(refused)
    assert 'value="337"' in text(refused), "what was typed stays"
    assert "Grace: Enter a whole number." in text(
        client.post(f"{path}/decide", typed(line, **{f"grace-{line.pk}": "long"}))
    )
    assert client.post(f"{path}/decide", typed(line, **{f"grace-{line.pk}": "48"})).status_code == 302
    assert kept(line) == (48 * HOUR, 48 * HOUR)
    assert "grace period 48 hours" in text(signed_in(alice).get(path))
    until = timezone.localtime(line.asked_until + 48 * HOUR)
    assert f"are not reclaimed for other teams before {until:%-d %b %Y, %H:%M}" in text(
        signed_in(alice).get("/teams/team-a/grants")
    )
    assert Event.objects.get(verb="request.decided").after["lines"][0]["grace_hours"] == 48


def test_by_api(line: QuotaLine, dana: User) -> None:
    def decide(hours: int) -> Any:
        body = {"lines": [{"id": line.pk, "approve": True, "grace_hours": hours}]}
        path = f"/api/v1/requests/{line.request_id}/decide"
        return signed_in(dana).post(path, json.dumps(body), content_type="application/json")

    refused = decide(-1)
    assert refused.status_code == 422
    assert (refused.json()["code"], refused.json()["field"]) == ("bad_grace", "lines[0].grace_hours")
    assert decide(10**30).json()["code"] == "bad_grace", "no number is too large to be refused"
    decided = decide(0).json()
    assert decided["lines"][0]["decided_grace_hours"] == 0
    assert kept(line) == (timedelta(0), timedelta(0))


def test_by_command(line: QuotaLine, dana: User) -> None:
    with pytest.raises(CommandError, match=r"lines\[0\]\.grace_hours: Enter a grace period"):
        call_command("quota", "approve", str(line.request_id), "--grace-hours", "999", "--as", dana.email)
    out = io.StringIO()
    call_command("quota", "approve", str(line.request_id), "--grace-hours", "336", "--as", dana.email, stdout=out)
    assert "grace 336 h" in out.getvalue()
    assert kept(line) == (GRACE_MAX, GRACE_MAX)


def test_unless_said_it_is_a_day(line: QuotaLine, dana: User) -> None:
    decision_actions.decide_request(line.request_id, [Decision(line.pk, approve=True)], by=Actor(dana, "page"))
    assert kept(line) == (GRACE, GRACE)


def test_what_is_denied_or_given_back_states_none(line: QuotaLine, alice: User, dana: User) -> None:
    by = Actor(dana, "page")
    decision_actions.decide_request(
        line.request_id, [Decision(line.pk, approve=False, reason="No.", grace_hours=5)], by=by
    )
    line.refresh_from_db()
    assert line.decided_grace is None
    with pytest.raises(Refused, match="is already denied"):
        decision_actions.decide_request(line.request_id, [Decision(line.pk, approve=True, grace_hours=5)], by=by)


def test_the_database_refuses_what_no_door_lets_in(line: QuotaLine) -> None:
    for grace in (timedelta(hours=-1), GRACE_MAX + HOUR):
        with pytest.raises(IntegrityError), transaction.atomic():
            QuotaLine.objects.filter(pk=line.pk).update(decided_grace=grace)
    assert QuotaRequest.objects.count() == 1
