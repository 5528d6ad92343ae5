"""Headers of responses for programs: tags of what was created, the limit of requests, the next page, the contract."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client, override_settings
from django.utils import timezone

from accounts.models import User
from accounts.rest import throttles
from catalog.models import GpuClass, Image
from tenants.models import Namespace, QuotaRequest, Tenant
from tests.support.http import contract
from tests.support.http.callers import caller, send
from tests.support.rows import make
from tests.support.rows.inbox import waits

pytestmark = pytest.mark.django_db
LIMITS = ("RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset")


# ---- tags of what was created ------------------------------------------------------------------------------------


def test_what_is_created_has_the_tag_that_reading_it_has(
    team_a: Tenant, namespace_a: Namespace, a100: GpuClass, alice: User, charlie: User
) -> None:
    client = caller(alice)
    make.grant(team_a, a100, units=4)
    Image.objects.create(name="PyTorch", reference="quay.io/jupyter/pytorch-notebook:2025", kind="job")
    ends = (timezone.now() + timedelta(days=30)).isoformat()
    request = {"team": "team-a", "justification": "A course.", "lines": [
        {"gpu_class": a100.slug, "units": 5, "ends_at": ends}
    ]}  # fmt: skip
    job = {"name": "nightly", "kind": "job", "gpu_class": a100.slug, "units": 1, "image": "PyTorch"}
    made = [
        (send(client, "POST", "/api/v1/requests", request), "/api/v1/requests/{id}"),
        (send(client, "POST", "/api/v1/workloads?team=team-a", job), "/api/v1/workloads/{name}?team=team-a"),
        (
            send(client, "POST", "/api/v1/teams/team-a/members", {"email": charlie.email, "role": "member"}),
            "/api/v1/teams/team-a/members/{id}",
        ),
    ]
    for answer, path in made:
        assert answer.status_code == 201, answer.json()
        assert answer["ETag"] == client.get(path.format(**answer.json()))["ETag"], path
    pending = QuotaRequest.objects.latest("pk")
    withdrawn = send(client, "POST", f"/api/v1/requests/{pending.pk}/withdraw")
    assert withdrawn["ETag"] == client.get(f"/api/v1/requests/{pending.pk}")["ETag"] != made[0][0]["ETag"]


def test_every_call_that_answers_with_an_object_that_has_a_tag_has_it_too() -> None:
    def answers(operation: dict[str, Any]) -> list[tuple[str, Any]]:
        found = []
        for status, answer in operation["responses"].items():
            schema = answer.get("content", {}).get("application/json", {}).get("schema", {})
            if status.startswith("2") and "$ref" in schema:
                found.append((schema["$ref"], answer.get("headers", {})))
        return found

    # What is being deleted has no version to match.
    operations = [
        one for path in contract.contract()["paths"].values() for method, one in path.items() if method != "delete"
    ]
    tagged = {
        schema
        for path in contract.contract()["paths"].values()
        for schema, headers in answers(path.get("get", {"responses": {}}))
        if "ETag" in headers
    }
    without = [
        (one["operationId"], schema)
        for one in operations
        for schema, headers in answers(one)
        if schema in tagged and "ETag" not in headers
    ]
    assert tagged
    assert without == []


# ---- limit of requests -------------------------------------------------------------------------------------------


@override_settings(API_REQUESTS_PER_MINUTE=3)
def test_every_counted_answer_says_how_many_calls_are_left(
    alice: User, monkeypatch: pytest.MonkeyPatch, unique: str
) -> None:
    # A minute of this test's own: the counts in Redis outlive it.
    monkeypatch.setattr(throttles.time, "time", lambda: 60.0 * int(unique, 16) + 15)
    client = caller(alice)
    for path, status, left in (("me", 200, "2"), ("workloads/none", 404, "1"), ("me", 200, "0"), ("me", 429, "0")):
        answer = client.get(f"/api/v1/{path}")
        assert (answer.status_code, [answer[name] for name in LIMITS]) == (status, ["3", left, "45"])
    # Another token of the same person has its own count.
    assert caller(alice).get("/api/v1/me")["RateLimit-Remaining"] == "2"


def test_who_is_not_counted_is_told_nothing(alice: User) -> None:
    for answer in (Client().get("/api/v1/me"), Client().get("/livez"), Client().get("/api/v1/openapi.json")):
        assert [name for name in LIMITS if name in answer] == []


# ---- next page ---------------------------------------------------------------------------------------------------


def test_the_next_page_is_also_a_link(team_a: Tenant, a100: GpuClass, alice: User) -> None:
    for units in (1, 2, 3):
        waits(team_a, a100, alice, units=units).lines.update(state="denied")
    client = caller(alice)
    page = client.get("/api/v1/requests?limit=2&team=team-a")
    assert page["Link"] == f'<{page.json()["next"]}>; rel="next"'
    last = client.get(page["Link"].removeprefix("<").partition(">")[0])
    assert len(last.json()["items"]) == 1
    assert (last.json()["next"], "Link" in last) == (None, False)


# ---- contract ----------------------------------------------------------------------------------------------------


def test_the_contract_is_not_sent_again_while_it_is_the_same() -> None:
    whole = Client().get("/api/v1/openapi.json")
    again = Client(headers={"If-None-Match": whole["ETag"]}).get("/api/v1/openapi.json")
    assert (again.status_code, again.content, again["ETag"]) == (304, b"", whole["ETag"])
    other = Client(headers={"If-None-Match": '"another"'}).get("/api/v1/openapi.json")
    assert (other.status_code, other.content) == (200, whole.content)
