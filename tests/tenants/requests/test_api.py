"""Requests, teams and classes by REST: the same verbs and the same refusals as the pages."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from accounts.models import Scope, User
from catalog.models import GpuClass
from tenants.core import queries as core_queries
from tenants.grants import queries
from tenants.models import QuotaRequest, Tenant
from tests.support.http.callers import caller, post
from tests.support.rows import make, mirrored


def ends(days: int = 30) -> str:
    return (timezone.now() + timedelta(days=days)).isoformat()


@pytest.fixture
def limited(a100: GpuClass) -> GpuClass:
    GpuClass.objects.filter(pk=a100.pk).update(promise_limit=8)
    a100.refresh_from_db()
    return a100


def wish(of: GpuClass, **line: Any) -> dict[str, Any]:
    lines = [{"gpu_class": of.slug, "units": 2, "ends_at": ends(), **line}]
    return {"team": "team-a", "justification": "Two trainings.", "lines": lines}


@pytest.fixture
def filed(team_a: Tenant, limited: GpuClass, alice: User) -> dict[str, Any]:
    answer = post(caller(alice), "/api/v1/requests", wish(limited))
    assert answer.status_code == 201
    assert answer["Location"].endswith(f"/api/v1/requests/{answer.json()['id']}")
    found: dict[str, Any] = answer.json()
    return found


def test_file_decide_and_see_it_in_force(
    filed: dict[str, Any], team_a: Tenant, limited: GpuClass, alice: User, dana: User
) -> None:
    line = filed["lines"][0]
    assert (line["gpu_class"], line["asked_units"], line["state"]) == (limited.slug, 2, "pending")
    decided = post(
        caller(dana), f"/api/v1/requests/{filed['id']}/decide", {"lines": [{"id": line["id"], "approve": True}]}
    )
    assert decided.status_code == 200
    assert (decided.json()["state"], decided.json()["lines"][0]["decided_units"]) == ("approved", 2)
    team = caller(alice, Scope.READ).get("/api/v1/teams/team-a").json()
    assert team["holdings"] == [
        {"gpu_class": limited.slug, "units": 2, "until": decided.json()["lines"][0]["decided_until"]}
    ]
    assert team["namespace"]["is_settled"] is False
    assert [member["role"] for member in team["members"]] == ["owner", "member"]
    assert list(queries.units_in_force(team_a.pk, core_queries.database_now()).values()) == [2]


def test_withdraw(filed: dict[str, Any], alice: User) -> None:
    client = caller(alice)
    answer = post(client, f"/api/v1/requests/{filed['id']}/withdraw")
    assert (answer.status_code, answer.json()["state"]) == (200, "withdrawn")
    again = post(client, f"/api/v1/requests/{filed['id']}/withdraw")
    assert (again.status_code, again.json()["code"]) == (409, "already_decided")


@pytest.mark.parametrize(
    ("scopes", "statuses"),
    [
        ([Scope.READ], (200, 403, 403)),
        ([Scope.READ, Scope.REQUEST], (200, 403, 409)),
        ([Scope.DECIDE], (403, 403, 403)),
    ],
)
def test_a_token_does_what_its_scopes_allow(
    filed: dict[str, Any], alice: User, limited: GpuClass, scopes: list[Scope], statuses: tuple[int, ...]
) -> None:
    client = caller(alice, *scopes)
    yes = {"lines": [{"id": filed["lines"][0]["id"], "approve": True}]}
    got = (
        client.get(f"/api/v1/requests/{filed['id']}").status_code,
        post(client, f"/api/v1/requests/{filed['id']}/decide", yes).status_code,
        post(client, "/api/v1/requests", wish(limited)).status_code,
    )
    # A requester who is no approver gets 403 for deciding even with the scope; the line asked twice is 409.
    assert got == statuses


@pytest.mark.parametrize(
    ("line", "code", "field"),
    [
        ({"units": 0}, "nothing_to_release", "lines[0].units"),
        ({"units": -1}, "invalid", "lines[0].units"),
        ({"units": "many"}, "invalid", "lines[0].units"),
        ({"gpu_class": "nothing"}, "unknown_class", "lines[0].gpu_class"),
        ({"ends_at": "2020-01-01T00:00:00Z"}, "bad_period", "lines[0].ends_at"),
        ({"kind": "gift"}, "invalid", "lines[0].kind"),
    ],
)
def test_what_is_wrong_is_named(
    team_a: Tenant, limited: GpuClass, alice: User, line: dict[str, Any], code: str, field: str
) -> None:
    answer = post(caller(alice), "/api/v1/requests", wish(limited, **line))
    assert answer.status_code == 422
    assert (answer.json()["code"], answer.json()["field"]) == (code, field)
    assert not QuotaRequest.objects.exists()


def test_a_stranger_gets_404_everywhere(filed: dict[str, Any], limited: GpuClass, charlie: User) -> None:
    client = caller(charlie)
    pk = filed["id"]
    answers = [
        client.get(f"/api/v1/requests/{pk}"),
        client.get("/api/v1/teams/team-a"),
        post(client, "/api/v1/requests", wish(limited)),
        post(client, f"/api/v1/requests/{pk}/withdraw"),
        post(client, f"/api/v1/requests/{pk}/decide", {"lines": [{"id": filed["lines"][0]["id"], "approve": True}]}),
    ]
    assert [answer.status_code for answer in answers] == [404] * 5
    assert client.get("/api/v1/requests").json()["items"] == []
    assert client.get("/api/v1/teams").json()["items"] == []
    assert post(caller(charlie), f"/api/v1/requests/{filed['id']}/decide", {"lines": "nonsense"}).status_code == 404


def test_a_line_of_another_request_is_not_found(filed: dict[str, Any], dana: User) -> None:
    answer = post(caller(dana), f"/api/v1/requests/{filed['id']}/decide", {"lines": [{"id": 999_999, "approve": True}]})
    assert answer.status_code == 404


def test_over_promising_by_token_needs_the_same_tick(filed: dict[str, Any], limited: GpuClass, dana: User) -> None:
    other = make.tenant(limited.cluster, slug="team-b", namespace=f"b-{limited.slug}")
    make.grant(other, limited, units=8)
    client, path = caller(dana), f"/api/v1/requests/{filed['id']}/decide"
    body: dict[str, Any] = {"lines": [{"id": filed["lines"][0]["id"], "approve": True}]}
    refused = post(client, path, body)
    assert (refused.status_code, refused.json()["code"]) == (409, "over_promised")
    ticked = post(client, path, body | {"over_promise": True, "over_promise_reason": "They end on Friday."})
    assert ticked.status_code == 200


def test_lists_are_paged_and_filtered(filed: dict[str, Any], dana: User, alice: User, limited: GpuClass) -> None:
    mig = make.gpu_class(limited.cluster, slug="mig", resource="nvidia.com/mig-1g.10gb")
    newer = post(caller(alice, Scope.REQUEST), "/api/v1/requests", wish(mig)).json()
    client = caller(dana)
    first = client.get("/api/v1/requests?limit=1").json()
    assert [item["id"] for item in first["items"]] == [newer["id"]]
    second = client.get(first["next"].partition("testserver")[2]).json()
    assert [item["id"] for item in second["items"]] == [filed["id"]]
    assert second["next"] is None
    assert len(client.get("/api/v1/requests?state=pending&team=team-a").json()["items"]) == 2
    assert client.get("/api/v1/requests?state=approved").json()["items"] == []
    assert [item["slug"] for item in client.get("/api/v1/teams").json()["items"]] == ["team-a"]


def test_the_catalog_with_what_is_free(limited: GpuClass, charlie: User) -> None:
    client = caller(charlie, Scope.READ)
    unknown = client.get(f"/api/v1/classes/{limited.slug}").json()
    assert (unknown["capacity"]["free"], unknown["capacity"]["as_of"]) == (None, None)
    mirrored.hardware_seen(limited.cluster)
    found = client.get("/api/v1/classes").json()["items"]
    assert [(item["slug"], item["unit"], item["capacity"]["free"]) for item in found] == [(limited.slug, "GPU", 16)]
    assert found[0]["capacity"]["is_current"]
    GpuClass.objects.update(life_cycle="draft")
    assert client.get(f"/api/v1/classes/{limited.slug}").status_code == 404


def test_a_state_that_no_request_has_is_refused_by_name(alice: User) -> None:
    answer = caller(alice, Scope.READ).get("/api/v1/requests?state=maybe")
    assert answer.status_code == 422
    assert answer.json()["code"] == "unknown_state"
    assert answer.json()["field"] == "state"


def test_web_does_not_wait_and_says_when_to_ask_again(filed: dict[str, Any], alice: User, charlie: User) -> None:
    path = f"/api/v1/requests/{filed['id']}"
    assert "Retry-After" not in caller(alice).get(path)
    assert caller(alice).get(f"{path}?wait=60")["Retry-After"] == "5"
    assert caller(charlie).get(f"{path}?wait=60").status_code == 404
    refused = caller(alice).get(f"{path}?wait=301")
    assert (refused.status_code, refused.json()["code"]) == (422, "bad_wait")
