"""Comments on a request, and who may write them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from accounts.core.actor import Actor
from accounts.models import Delivery, Event, User
from catalog.models import GpuClass
from portal.core.errors import Refused
from tenants.models import QuotaRequest, Tenant
from tenants.requests import actions
from tenants.requests import queries as request_queries
from tenants.requests.comments import actions as comment_actions
from tenants.requests.comments import queries as comment_queries
from tenants.requests.decisions import actions as decision_actions
from tenants.requests.decisions import types as decision_types
from tenants.requests.types import RequestedLine
from tests.support.rows import make


def page(user: User) -> Actor:
    return Actor(user=user, via="page")


def as_(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def text(response: Any) -> str:
    return " ".join(response.content.decode().split())


@pytest.fixture
def filed(team_a: Tenant, a100: GpuClass, alice: User, dana: User) -> QuotaRequest:
    GpuClass.objects.update(promise_limit=8)
    now = timezone.now()
    line = RequestedLine(a100.slug, 2, now, now + timedelta(days=30))
    request = actions.file_request("team-a", lines=[line], justification="Two trainings.", by=page(alice))
    Delivery.objects.all().delete()
    return request


def is_asked_back(filed: QuotaRequest, by: User) -> bool:
    return request_queries.request_rows([filed], by=page(by))[0].is_asked_back


def test_an_approver_asks_back_until_the_team_answers(filed: QuotaRequest, alice: User, bob: User, dana: User) -> None:
    comment_actions.comment_request(filed.pk, text=" For how long? ", asks_back=True, by=page(dana))
    assert is_asked_back(filed, alice)
    assert {delivery.user for delivery in Delivery.objects.all()} == {alice}
    assert "For how long?" in Delivery.objects.get().body
    assert "Pending, information requested" in text(as_(bob).get("/teams/team-a/requests"))
    Delivery.objects.all().delete()
    comment_actions.comment_request(filed.pk, text="Two weeks.", by=page(bob))
    assert not is_asked_back(filed, alice)
    assert {delivery.user for delivery in Delivery.objects.all()} == {alice, dana}
    assert [(one.who, one.asks_back) for one in comment_queries.comment_rows(filed)] == [("Dana", True), ("Bob", False)]
    assert Event.objects.filter(verb="request.asked_back").count() == 1


def test_a_decision_ends_the_question(filed: QuotaRequest, dana: User) -> None:
    comment_actions.comment_request(filed.pk, text="For how long?", asks_back=True, by=page(dana))
    decision_actions.decide_request(
        filed.pk, [decision_types.Decision(filed.lines.get().pk, approve=True)], by=page(dana)
    )
    assert not is_asked_back(filed, dana)
    with pytest.raises(Refused) as refused:
        comment_actions.comment_request(filed.pk, text="Why?", asks_back=True, by=page(dana))
    assert refused.value.code == "already_decided"
    comment_actions.comment_request(filed.pk, text="All set.", by=page(dana))


@pytest.mark.parametrize(
    ("who", "asks_back", "expected"),
    [
        ("alice", False, ""),
        ("bob", False, ""),
        ("dana", True, ""),
        ("dana", False, ""),
        ("alice", True, "not_allowed"),
        ("olga", False, "not_allowed"),
        ("olga", True, "not_allowed"),
        ("charlie", False, "not_found"),
        ("other", False, "not_allowed"),
        ("inside", True, "not_allowed"),
    ],
)
def test_who_may_say_something(
    filed: QuotaRequest, request: pytest.FixtureRequest, team_a: Tenant, who: str, asks_back: bool, expected: str
) -> None:
    if who == "other":
        elsewhere = make.gpu_class(team_a.namespaces.get().cluster, slug="mig", resource="nvidia.com/mig-1g.10gb")
        user = make.approver("Dora", gpu_class=elsewhere)
    elif who == "inside":
        user = make.approver("Doro")
        make.member(team_a, user)
    else:
        user = request.getfixturevalue(who)
    try:
        comment_actions.comment_request(filed.pk, text="Hm.", asks_back=asks_back, by=page(user))
        code = ""
    except Refused as refused:
        code = refused.code
    assert code == expected
    assert len(comment_queries.comment_rows(filed)) == (0 if expected else 1)


@pytest.mark.parametrize("said", ["", "   ", "x" * 2001])
def test_a_comment_says_something_in_bounds(filed: QuotaRequest, alice: User, said: str) -> None:
    with pytest.raises(Refused) as refused:
        comment_actions.comment_request(filed.pk, text=said, by=page(alice))
    assert (refused.value.code, refused.value.refusal.field) == ("bad_comment", "text")
    assert as_(alice).post(f"/requests/{filed.pk}/comment", {"text": said}).status_code == 422


def test_the_page_has_the_thread_and_its_buttons(filed: QuotaRequest, alice: User, dana: User, charlie: User) -> None:
    done = as_(dana).post(f"/requests/{filed.pk}/comment", {"text": "For <b>how</b> long?", "asks_back": "yes"})
    assert done.headers["Location"] == f"/requests/{filed.pk}#thread"
    shown = text(as_(alice).get(f"/requests/{filed.pk}"))
    assert "requests information" in shown
    assert "For &lt;b&gt;how&lt;/b&gt; long?" in shown
    assert "Request information" not in shown
    assert "Request information" in text(as_(dana).get(f"/requests/{filed.pk}"))
    assert as_(charlie).post(f"/requests/{filed.pk}/comment", {"text": "x"}).status_code == 404


def test_the_same_by_the_api(filed: QuotaRequest, alice: User, charlie: User) -> None:
    path = f"/api/v1/requests/{filed.pk}/comments"
    made = as_(alice).post(path, {"text": "Two weeks."}, content_type="application/json")
    assert made.status_code == 201
    assert made.json()["text"] == "Two weeks."
    as_(alice).post(path, {"text": "Or three."}, content_type="application/json")
    first = as_(alice).get(f"{path}?limit=1").json()
    assert first["items"] == [made.json()]
    assert [one["text"] for one in as_(alice).get(first["next"]).json()["items"]] == ["Or three."]
    assert as_(alice).post(path, {"text": ""}, content_type="application/json").status_code in (400, 422)
    assert as_(charlie).get(path).status_code == 404
