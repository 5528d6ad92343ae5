"""How a team begins, by REST: the same verbs and the same refusals as the pages."""

from __future__ import annotations

from typing import Any

import pytest

from accounts.models import Scope, User
from catalog.models import GpuClass
from tenants.models import Bundle, TeamRequest, Tenant
from tenants.onboarding.bundles import actions as bundle_actions
from tests.support.http.callers import caller, post
from tests.support.http.pages import ask, page
from tests.support.rows import make


@pytest.fixture
def bundle(a100: GpuClass, olga: User) -> Bundle:
    GpuClass.objects.filter(pk=a100.pk).update(promise_limit=8)
    return bundle_actions.put_bundle(name="Training", lines=[(a100.slug, 2)], days=60, by=page(olga))


@pytest.fixture
def wish(bundle: Bundle, unique: str) -> dict[str, str]:
    return {"name": "Robots", "slug": f"robots-{unique}", "purpose": "Grasping from video.", "bundle": "Training"}


def test_ask_see_and_decide(wish: dict[str, str], a100: GpuClass, alice: User, charlie: User, dana: User) -> None:
    [offered] = caller(charlie, Scope.READ).get("/api/v1/bundles").json()["items"]
    assert offered == {
        "name": "Training",
        "summary": "",
        "days": 60,
        "lines": [{"gpu_class": a100.slug, "units": 2}],
    }
    answer = post(caller(charlie, Scope.REQUEST), "/api/v1/team-requests", wish)
    assert answer.status_code == 201
    asked = answer.json()
    assert (asked["slug"], asked["state"], asked["bundle"], asked["asked_by"], asked["team"]) == (
        wish["slug"],
        "pending",
        "Training",
        "Charlie",
        "",
    )
    listed = lambda user: caller(user, Scope.READ).get("/api/v1/team-requests?state=pending").json()["items"]  # noqa: E731
    assert listed(charlie) == listed(dana) == [asked]
    assert listed(alice) == []
    decide = f"/api/v1/team-requests/{asked['id']}/decide"
    less = post(caller(dana), decide, {"approve": True, "units": {a100.slug: 1}})
    assert (less.status_code, less.json()["code"], less.json()["field"]) == (422, "reason_missing", "lines[0].reason")
    decided = post(caller(dana), decide, {"approve": True, "units": {a100.slug: 1}, "reason": "One first."}).json()
    assert (decided["state"], decided["team"], decided["decided_by"]) == ("approved", wish["slug"], "Dana")
    [held] = caller(charlie).get(f"/api/v1/teams/{wish['slug']}").json()["holdings"]
    assert (held["gpu_class"], held["units"]) == (a100.slug, 1)
    again = post(caller(dana), decide, {"approve": False, "reason": "No."})
    assert (again.status_code, again.json()["code"]) == (409, "already_decided")


def test_refusals(wish: dict[str, str], team_a: Tenant, a100: GpuClass, alice: User, charlie: User, dana: User) -> None:
    address = "/api/v1/team-requests"
    taken = post(caller(charlie), address, {**wish, "slug": "team-a"})
    assert (taken.status_code, taken.json()["code"], taken.json()["field"]) == (409, "slug_taken", "slug")
    assert post(caller(charlie), address, {**wish, "bundle": "None"}).json()["code"] == "unknown_bundle"
    assert post(caller(charlie, Scope.READ), address, wish).json()["code"] == "missing_scope"
    assert caller(charlie).get(f"{address}?state=gone").json()["code"] == "unknown_state"
    row = post(caller(charlie), address, wish).json()["id"]
    assert post(caller(charlie), address, {**wish, "slug": "robots-2"}).json()["code"] == "already_asked"
    # A stranger gets no information, whatever the body is.
    for verb in ("decide", "withdraw"):
        assert post(caller(alice), f"{address}/{row}/{verb}", {"units": "many"}).status_code == 404
    assert post(caller(charlie), f"{address}/{row}/decide", {"approve": True}).json()["code"] == "not_allowed"
    more = post(caller(dana), f"{address}/{row}/decide", {"approve": True, "units": {a100.slug: 9}})
    assert (more.status_code, more.json()["code"]) == (409, "over_promised")
    assert Tenant.objects.count() == 1
    assert post(caller(charlie), f"{address}/{row}/withdraw").json()["state"] == "withdrawn"


def test_lists_cost_the_same_for_one_and_for_many(
    wish: dict[str, str], charlie: User, dana: User, django_assert_max_num_queries: Any
) -> None:
    ask(charlie, **wish)
    client = caller(dana)
    client.get("/api/v1/team-requests")
    with django_assert_max_num_queries(20) as few:
        client.get("/api/v1/team-requests")
    for number in range(5):
        ask(make.user(f"New{number}"), slug=f"new-{number}")
    with django_assert_max_num_queries(20) as many:
        assert len(client.get("/api/v1/team-requests").json()["items"]) == 6
    assert len(many) == len(few)
    assert TeamRequest.objects.count() == 6
