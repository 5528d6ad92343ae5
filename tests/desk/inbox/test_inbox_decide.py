"""Decisions about a set of requests: each is decided separately, by the rules of the request's own page."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client

from accounts.models import Event, User
from catalog.models import GpuClass
from cluster.models import Cluster
from desk.inbox import bulk_decisions
from tenants.models import Grant, QuotaLine, QuotaRequest, Tenant
from tests.desk.inbox.test_inbox import limited
from tests.support.rows import make
from tests.support.rows.inbox import as_, team, text, waits
from tests.support.rows.usage import looked, used
from tests.support.threads import in_threads

__all__ = ["limited"]


def send(user: User, verb: str, *requests: QuotaRequest, **typed: str) -> Any:
    return as_(user).post(f"/inbox/{verb}", {"request": [one.pk for one in requests], **typed})


def states(*requests: QuotaRequest) -> list[str]:
    found = dict(QuotaLine.objects.values_list("request_id", "state"))
    return [found[one.pk] for one in requests]


def answers(response: Any) -> list[tuple[int, str]]:
    return [(one.pk, one.refusal) for one in response.context["answers"]]


@pytest.fixture
def three(cluster: Cluster, limited: GpuClass, charlie: User) -> list[QuotaRequest]:
    """Requests for 3, 4 and 2 of 8 units: the last one does not fit."""
    return [waits(team(cluster, f"t{units}"), limited, charlie, units=units) for units in (3, 4, 2)]


def test_the_ticked_are_approved_as_asked_with_the_facts_of_that_moment(
    three: list[QuotaRequest], limited: GpuClass, dana: User
) -> None:
    looked(limited)
    used(three[0].tenant.namespaces.get(), limited, peak=2, total=60)
    done = send(dana, "approve", three[0], three[1], team="", reason="As agreed.")
    assert done["Location"] == "/inbox?"
    assert states(*three) == ["approved", "approved", "pending"]
    assert list(Grant.objects.order_by("units").values_list("units", flat=True)) == [3, 4]
    line = three[0].lines.get()
    assert (line.decided_units, line.decided_by, line.reason) == (3, dana, "As agreed.")
    assert (line.facts["peak"], line.facts["held"]) == (2, 0)
    assert Event.objects.filter(verb="request.decided").count() == 2


def test_one_that_is_refused_undoes_no_other_and_stays_ticked(three: list[QuotaRequest], dana: User) -> None:
    response = send(dana, "approve", *three, reason="All of you.")
    assert response.status_code == 200
    assert states(*three) == ["approved", "approved", "pending"]
    assert answers(response) == [(three[0].pk, ""), (three[1].pk, ""), (three[2].pk, bulk_decisions.OPEN_IT)]
    page = text(response)
    assert f'<a href="/requests/{three[0].pk}">#{three[0].pk}</a> approved' in page
    assert f'<a href="/requests/{three[2].pk}">#{three[2].pk}</a> not approved: {bulk_decisions.OPEN_IT}' in page
    assert page.count(" checked") == 1
    assert f'name="request" value="{three[2].pk}"' in page
    assert ">All of you.</textarea>" in page
    assert Grant.objects.count() == 2


def test_more_than_there_is_is_never_promised_by_a_set(
    cluster: Cluster, limited: GpuClass, charlie: User, dana: User
) -> None:
    request = waits(team(cluster, "one"), limited, charlie, units=9)
    response = send(dana, "approve", request, over_promise="yes", reason="Do it.")
    assert answers(response) == [(request.pk, bulk_decisions.OPEN_IT)]
    assert states(request) == ["pending"]


def test_denying_needs_a_reason_and_loses_nothing_without(three: list[QuotaRequest], dana: User) -> None:
    response = send(dana, "deny", three[0], three[2], reason="  ")
    assert response.status_code == 422
    assert "Enter a comment of 1 to 500 characters" in text(response)
    assert text(response).count(" checked") == 2
    assert states(*three) == ["pending"] * 3
    done = send(dana, "deny", three[0], three[2], reason="Use slices.", group="look")
    assert done["Location"] == "/inbox?group=look"
    assert states(*three) == ["denied", "pending", "denied"]
    assert three[2].lines.get().reason == "Use slices."


def test_nothing_ticked_changes_nothing(three: list[QuotaRequest], dana: User) -> None:
    response = send(dana, "approve", reason="Why not.")
    assert response.status_code == 422
    assert "Select at least one request." in text(response)
    assert ">Why not.</textarea>" in text(response)
    assert states(*three) == ["pending"] * 3


def test_each_row_is_refused_by_its_own_rule(
    team_a: Tenant, cluster: Cluster, limited: GpuClass, alice: User, charlie: User, dana: User
) -> None:
    other = make.gpu_class(cluster, slug="other", name="Other", promise_limit=9)
    erin = make.approver("Erin", gpu_class=limited)
    make.member(team_a, erin)
    own_team = waits(team_a, limited, alice, units=1)
    own = waits(team(cluster, "own"), limited, erin, units=1)
    foreign = waits(team(cluster, "foreign"), other, charlie, units=1)
    decided = waits(team(cluster, "decided"), limited, charlie, units=1)
    send(dana, "approve", decided)
    fine = waits(team(cluster, "fine"), limited, charlie, units=1)
    response = as_(erin).post(
        "/inbox/approve", {"request": [own_team.pk, own.pk, foreign.pk, decided.pk, 987654, fine.pk]}
    )
    assert [(pk, sentence[:34]) for pk, sentence in answers(response)] == [
        (own_team.pk, "You cannot decide requests of your"),
        (own.pk, "You cannot decide your own request"),
        (foreign.pk, "You do not decide requests for Oth"),
        (decided.pk, "This line is already approved. Not"),
        (987654, "Not found: the address is wrong, o"),
        (fine.pk, ""),
    ]
    assert states(own_team, own, foreign, fine) == ["pending", "pending", "pending", "approved"]


def test_only_the_lines_of_this_approver_are_decided(
    cluster: Cluster, limited: GpuClass, charlie: User, dana: User
) -> None:
    other = make.gpu_class(cluster, slug="other", name="Other", promise_limit=9)
    erin = make.approver("Erin", gpu_class=limited)
    request = waits(team(cluster, "one"), limited, charlie, units=1)
    line = request.lines.get()
    QuotaLine.objects.create(
        request=request, tenant=request.tenant, gpu_class=other, asked_units=1, asked_from=line.asked_from,
        asked_until=line.asked_until,
    )  # fmt: skip
    assert send(erin, "approve", request).status_code == 302
    assert list(request.lines.values_list("state", flat=True)) == ["approved", "pending"]
    assert send(dana, "approve", request).status_code == 302
    assert list(request.lines.values_list("state", flat=True)) == ["approved", "approved"]


def test_the_set_is_decided_by_approvers_and_by_post(
    three: list[QuotaRequest], alice: User, olga: User, dana: User
) -> None:
    for verb in ("approve", "deny"):
        assert send(alice, verb, *three, reason="x").status_code == 403
        assert send(olga, verb, *three, reason="x").status_code == 403
        assert as_(dana).get(f"/inbox/{verb}?request={three[0].pk}").status_code == 405
    checked = Client(enforce_csrf_checks=True)
    checked.force_login(dana)
    assert checked.post("/inbox/approve", {"request": three[0].pk}).status_code == 403
    assert states(*three) == ["pending"] * 3


@pytest.mark.django_db(transaction=True)
def test_two_approvers_at_once_have_one_winner_for_each_line(
    cluster: Cluster, charlie: User, dana: User, limited: GpuClass
) -> None:
    GpuClass.objects.filter(pk=limited.pk).update(promise_limit=100)
    found = [waits(team(cluster, f"t{number}"), limited, charlie, units=1) for number in range(6)]
    erin = make.approver("Erin")
    pks = [one.pk for one in found]
    told: dict[str, list[tuple[int, str]]] = {}

    def decide(user: User, verb: str, order: list[int]) -> None:
        response = as_(user).post(f"/inbox/{verb}", {"request": order, "reason": "So it is."})
        # Read from the page: the test client mixes up the contexts that two threads render at the same time.
        refused = {
            int(pk): said for pk, said in re.findall(r">#(\d+)</a> not (?:approved|denied): ([^<]+)<", response.text)
        }
        told[user.name] = [(pk, refused.get(pk, "")) for pk in order]

    in_threads(0, lambda: None, lambda: decide(dana, "approve", pks), lambda: decide(erin, "deny", pks[::-1]))
    for request in found:
        line = request.lines.get()
        won = {name for name, rows in told.items() if (request.pk, "") in rows}
        assert won == {line.decided_by.name if line.decided_by else ""}
        assert Grant.objects.filter(line=line).count() == (line.state == "approved")
        assert line.state == ("approved" if won == {"Dana"} else "denied")
        lost = next(rows for name, rows in told.items() if name not in won)
        assert "already" in dict(lost)[request.pk] or "Another change of the same object" in dict(lost)[request.pk]
    assert Event.objects.filter(verb="request.decided").count() == 6
