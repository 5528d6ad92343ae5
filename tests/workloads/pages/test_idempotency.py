"""A call with an Idempotency-Key that is sent again."""

from __future__ import annotations

import hashlib
import json
import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import get_resolver
from django.utils import timezone

from accounts.models import Event, KeptAnswer, User
from accounts.rest import idempotency
from accounts.schema.hooks import DOCUMENTED_NAMES
from catalog.models import GpuClass, Image
from tenants.models import Membership, QuotaRequest, Tenant
from tests.support.http.callers import bearer
from tests.support.rows import make
from tests.support.threads import at_once
from workloads.models import Run, Workload

pytestmark = pytest.mark.django_db
RUNS = "/api/v1/workloads/train/runs"


class Caller:
    """A client with a token; it sends `key` if one is given."""

    def __init__(self, user: User, *scopes: str) -> None:
        self.headers = bearer(user, *scopes)

    def post(self, path: str, body: Any = None, *, key: str | None = None) -> Any:
        headers = self.headers if key is None else {**self.headers, "Idempotency-Key": key}
        return Client().post(path, data=body or {}, content_type="application/json", headers=headers)


@pytest.fixture
def bob_calls(team_a: Tenant, a100: GpuClass, bob: User, images: list[Image]) -> Caller:
    make.grant(team_a, a100, units=4)
    return Caller(bob, "read", "launch", "request")


@pytest.fixture
def body(a100: GpuClass) -> dict[str, Any]:
    return {"name": "train", "kind": "job", "gpu_class": a100.slug, "units": 1, "image": "python", "command": ["true"]}


def launched(caller: Caller, body: dict[str, Any], **options: Any) -> Any:
    return caller.post("/api/v1/workloads", body, **options)


def test_a_new_key_of_the_portal_forgets_no_call(bob_calls: Caller, body: dict[str, Any], settings: Any) -> None:
    first = launched(bob_calls, body, key="of-this-push")
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = "another key for tests only", [settings.SECRET_KEY]
    again = launched(bob_calls, body, key="of-this-push")
    assert (again.status_code, again.content) == (first.status_code, first.content)
    assert Workload.objects.count() == 1
    other = launched(bob_calls, {**body, "units": 2}, key="of-this-push")
    assert other.json()["code"] == "key_reused"


def ended() -> None:
    Run.objects.update(ended_at=timezone.now(), outcome=Run.Outcome.SUCCEEDED)


def test_the_same_call_is_done_once_and_answered_alike(bob_calls: Caller, body: dict[str, Any]) -> None:
    first = launched(bob_calls, body, key="one")
    again = launched(bob_calls, dict(reversed(body.items())), key="one")
    assert (first.status_code, again.status_code) == (201, 201)
    assert again.content == first.content
    assert (first.headers.get("Idempotent-Replayed"), again.headers["Idempotent-Replayed"]) == (None, "true")
    assert Workload.objects.count() == Run.objects.count() == 1
    assert Event.objects.filter(verb="workload.launched").count() == 1


def test_what_has_changed_since_does_not_change_the_answer(bob_calls: Caller, body: dict[str, Any]) -> None:
    launched(bob_calls, body)
    ended()
    first = bob_calls.post(RUNS, key="build 4711")
    assert first.json()["run"]["number"] == 2
    ended()
    assert bob_calls.post(RUNS, key="build 4711").content == first.content
    assert Run.objects.count() == 2
    assert bob_calls.post(RUNS, key="build 4712").json()["run"]["number"] == 3
    assert bob_calls.post(RUNS).json()["code"] == "still_running"


def test_an_extension_is_added_once(bob_calls: Caller, body: dict[str, Any]) -> None:
    launched(bob_calls, {**body, "options": {"run_hours": 1}})
    Run.objects.update(started_at=timezone.now(), ends_at=timezone.now() + timedelta(hours=1))
    for _ in range(2):
        assert bob_calls.post("/api/v1/workloads/train/extend", {"hours": 2}, key="more").status_code == 200
    assert Run.objects.get().extended_minutes == 120


def test_a_request_is_filed_once(alice: User, team_a: Tenant, a100: GpuClass) -> None:
    of_alice = Caller(alice, "read", "request")
    ends = timezone.now() + timedelta(days=30)
    line = {"gpu_class": a100.slug, "units": 3, "kind": "boost", "ends_at": ends.isoformat()}
    asked = {"team": team_a.slug, "justification": "For the course.", "lines": [line]}
    first, again = (of_alice.post("/api/v1/requests", asked, key="ask") for _ in range(2))
    assert first.status_code == again.status_code == 201
    assert first.headers["Location"] == again.headers["Location"]
    assert QuotaRequest.objects.count() == 1


@pytest.mark.parametrize("path", ["/api/v1/workloads?team=team-a", RUNS])
def test_another_call_with_the_key_is_refused(bob_calls: Caller, body: dict[str, Any], path: str) -> None:
    launched(bob_calls, body, key="one")
    ended()
    answer = bob_calls.post(path, {} if path == RUNS else body, key="one")
    assert (answer.status_code, answer.json()["code"]) == (422, "key_reused")
    assert answer.json()["field"] == "Idempotency-Key"
    assert "Choose a new key" in answer.json()["message"]
    assert Run.objects.count() == 1


def test_another_body_with_the_key_is_refused(bob_calls: Caller, body: dict[str, Any]) -> None:
    launched(bob_calls, body, key="one")
    assert launched(bob_calls, {**body, "name": "other"}, key="one").json()["code"] == "key_reused"
    assert Workload.objects.count() == 1


def test_a_refusal_keeps_nothing(bob_calls: Caller, body: dict[str, Any], team_a: Tenant) -> None:
    refused = launched(bob_calls, {**body, "image": "none"}, key="one")
    assert (refused.status_code, refused.json()["code"]) == (422, "unknown_image")
    assert KeptAnswer.objects.count() == 0
    assert launched(bob_calls, body, key="one").status_code == 201


@pytest.mark.parametrize("key", ["", "x" * 201, "ä", "tab\there"])
def test_a_key_that_is_none_is_named(bob_calls: Caller, body: dict[str, Any], key: str) -> None:
    answer = launched(bob_calls, body, key=key)
    assert (answer.status_code, answer.json()["code"]) == (422, "bad_key")
    assert Workload.objects.count() == 0


def test_the_key_of_one_person_says_nothing_to_another(
    bob_calls: Caller, alice: User, body: dict[str, Any], charlie: User
) -> None:
    launched(bob_calls, body, key="one")
    of_alice = Caller(alice, "read", "launch")
    assert launched(of_alice, body, key="one").json()["code"] == "name_taken"
    stranger = Caller(charlie, "read", "launch").post("/api/v1/workloads?team=team-a", body, key="one")
    assert (stranger.status_code, stranger.json()["code"]) == (404, "not_found")


def test_who_has_left_is_told_nothing_again(bob_calls: Caller, body: dict[str, Any], bob: User) -> None:
    path = "/api/v1/workloads?team=team-a"
    assert bob_calls.post(path, body, key="one").status_code == 201
    Membership.objects.filter(user=bob).delete()
    for key in ("one", "", "two"):
        assert bob_calls.post(path, body, key=key).status_code == 404


def test_a_token_that_may_not_launch_is_told_nothing_again(bob_calls: Caller, body: dict[str, Any], bob: User) -> None:
    launched(bob_calls, body, key="one")
    assert launched(Caller(bob, "read"), body, key="one").json()["code"] == "missing_scope"


def test_answers_are_kept_for_a_day(bob_calls: Caller, body: dict[str, Any], bob: User) -> None:
    launched(bob_calls, body, key="one")
    past = timezone.now() - idempotency.KEPT_FOR - timedelta(seconds=1)
    KeptAnswer.objects.update(at=past)
    older = past - timedelta(hours=1)
    KeptAnswer.objects.bulk_create(KeptAnswer(user=bob, key=f"old {n}", call="-", at=older) for n in range(150))
    ended()
    assert launched(bob_calls, body, key="one").json()["code"] == "name_taken", "not answered any more, done again"
    assert bob_calls.post(RUNS, key="one").status_code == 201
    # The answers that the refused call deleted are back.
    assert KeptAnswer.objects.filter(at__lte=past).count() == 150 - idempotency.SWEPT


def test_nothing_of_the_body_can_be_tried_out_on_the_table(bob_calls: Caller, body: dict[str, Any]) -> None:
    launched(bob_calls, body, key="one")
    [kept] = KeptAnswer.objects.all()
    asked = ["POST", "/api/v1/workloads", [], body]
    assert kept.call != hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()


@pytest.mark.django_db(transaction=True)
def test_of_calls_at_the_same_moment_one_is_done(bob_calls: Caller, body: dict[str, Any]) -> None:
    answers: list[Any] = []

    def call() -> None:
        answers.append(launched(bob_calls, body, key="one"))

    assert at_once(*[call] * 4) == ["ok"] * 4
    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.content for answer in answers}) == 1
    assert sorted(answer.headers.get("Idempotent-Replayed", "") for answer in answers) == ["", "true", "true", "true"]
    assert Workload.objects.count() == 1


def documented(pattern: str) -> str:
    """The path as the contract writes it."""
    return "/" + re.sub(r"<(?:\w+:)?(\w+)>", lambda found: f"{{{DOCUMENTED_NAMES.get(found[1], found[1])}}}", pattern)


def test_the_contract_says_which_calls_take_a_key(client: Client) -> None:
    document = client.get("/api/v1/openapi.json").json()
    said = {
        (path, method)
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
        if any(one["name"] == "Idempotency-Key" for one in operation.get("parameters", ()))
    }
    taken = set()
    for pattern in get_resolver().url_patterns:
        view = getattr(getattr(pattern, "callback", None), "cls", None)
        for method in ("post", "put", "patch", "delete"):
            if hasattr(getattr(view, method, None), "takes_key"):
                taken.add((documented(str(pattern.pattern)), method))
    assert said == taken
    assert ("/api/v1/workloads/{name}/runs", "post") in said
