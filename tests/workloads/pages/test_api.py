"""The REST API of workloads, as the author of a CI pipeline uses it."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from accounts.models import Event, User
from catalog.models import GpuClass, Image
from tenants.models import Namespace, Tenant
from tests.support.http.callers import WorkloadsCaller
from tests.support.rows import make, running
from workloads.core import policy
from workloads.models import Run, Workload

pytestmark = pytest.mark.django_db


@pytest.fixture
def bob_calls(team_a: Tenant, a100: GpuClass, bob: User, images: list[Image]) -> WorkloadsCaller:
    make.grant(team_a, a100, units=2)
    return WorkloadsCaller(bob, ["read", "launch"])


@pytest.fixture
def body(a100: GpuClass) -> dict[str, Any]:
    return {"kind": "job", "gpu_class": a100.slug, "units": 1, "image": "python", "command": ["python", "train.py"]}


def test_declare_start_stop_and_delete(bob_calls: WorkloadsCaller, body: dict[str, Any]) -> None:
    declared = bob_calls("PUT", "/train", body)
    assert declared.status_code == 201
    assert declared.json()["run"] is None
    assert declared.json()["status"]["reason"] == "not_started"

    assert bob_calls("PUT", "/train", body).status_code == 200
    assert Event.objects.filter(verb__startswith="workload.").count() == 1  # the same PUT again records no event

    started = bob_calls("POST", "/train/runs")
    assert (started.status_code, started.json()["run"]["number"]) == (201, 1)
    assert bob_calls("POST", "/train/runs").json()["code"] == "still_running"

    stopped = bob_calls("POST", "/train/stop")
    assert (stopped.status_code, stopped.json()["status"]["phase"]) == (202, "stopping")
    assert bob_calls("POST", "/train/stop").status_code == 202

    deleted = bob_calls("DELETE", "/train")
    assert (deleted.status_code, deleted.json()["status"]["phase"]) == (202, "stopping")
    verbs = list(Event.objects.filter(verb__startswith="workload.").order_by("id").values_list("verb", flat=True))
    assert verbs == ["workload.declared", "workload.started", "workload.stopped", "workload.deleted"]


def test_a_full_team_keeps_what_it_has_and_adds_nothing(
    bob_calls: WorkloadsCaller, body: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(policy, "WORKLOADS_LIMIT", 1)
    assert bob_calls("PUT", "/train", body).status_code == 201
    assert bob_calls("PUT", "/train", {**body, "command": ["sh"]}).status_code == 200
    assert bob_calls("POST", "/train/runs").status_code == 201

    for answer in (bob_calls("PUT", "/more", body), bob_calls("POST", "", {"name": "more", **body})):
        assert (answer.status_code, answer.json()["code"]) == (409, "too_many_workloads")
    assert Workload.objects.count() == 1


def test_launch_in_one_call(bob_calls: WorkloadsCaller, body: dict[str, Any]) -> None:
    launched = bob_calls("POST", "", {**body, "name": "train"})
    assert (launched.status_code, launched.json()["run"]["number"]) == (201, 1)
    assert launched.json()["url"].endswith("/teams/team-a/workloads/train")
    again = bob_calls("POST", "", {**body, "name": "train"})
    assert (again.status_code, again.json()["code"], again.json()["field"]) == (409, "name_taken", "name")


def test_a_changed_declaration_is_for_the_next_run(bob_calls: WorkloadsCaller, body: dict[str, Any]) -> None:
    bob_calls("POST", "", {**body, "name": "train"})
    changed = bob_calls("PUT", "/train", {**body, "units": 2})
    assert (changed.status_code, changed.json()["units"]) == (200, 2)
    assert Run.objects.get().spec["units"] == 1
    event = Event.objects.filter(verb="workload.changed").get()
    assert (event.before["units"], event.after["units"]) == (1, 2)


@pytest.mark.parametrize(
    ("change", "code", "field"),
    [
        ({"units": 3}, "exceeds_grant", "units"),
        ({"units": 0}, "invalid", "units"),
        ({"gpu_class": "nothing"}, "unknown_class", "gpu_class"),
        ({"image": "unheard/of:1"}, "unknown_image", "image"),
        ({"kind": "notebook", "image": "minimal"}, "no_command", "command"),
        ({"command": "sh"}, "invalid", "command"),
        ({"volume": "No Name"}, "bad_volume", "volume"),
    ],
)
def test_what_can_never_start_is_refused_with_its_field(
    bob_calls: WorkloadsCaller, body: dict[str, Any], change: dict[str, Any], code: str, field: str
) -> None:
    refused = bob_calls("PUT", "/train", {**body, **change})
    assert (refused.status_code, refused.json()["code"], refused.json()["field"]) == (422, code, field)
    assert not Workload.objects.exists()


def test_a_token_does_what_its_scopes_say(
    team_a: Tenant, bob: User, bob_calls: WorkloadsCaller, body: dict[str, Any]
) -> None:
    bob_calls("POST", "", {**body, "name": "train"})
    reads = WorkloadsCaller(bob, ["read"])
    assert reads("GET", "/train").status_code == 200
    for method, path in (("PUT", "/train"), ("DELETE", "/train"), ("POST", "/train/stop"), ("POST", "/train/runs")):
        refused = reads(method, path, body)
        assert (refused.status_code, refused.json()["code"]) == (403, "missing_scope")


def test_a_stranger_meets_nothing(bob_calls: WorkloadsCaller, body: dict[str, Any], charlie: User) -> None:
    bob_calls("POST", "", {**body, "name": "train"})
    stranger = WorkloadsCaller(charlie, ["read", "launch"])
    for method, path in (
        ("GET", "/train?team=team-a"),
        ("PUT", "/train?team=team-a"),
        ("DELETE", "/train?team=team-a"),
        ("POST", "/train/runs?team=team-a"),
        ("POST", "/train/stop?team=team-a"),
        ("GET", "/train"),
    ):
        assert stranger(method, path, body if method != "GET" else None).status_code == 404, path
    assert stranger("GET", "?team=team-a").status_code == 404


def test_who_is_in_several_teams_says_which(
    bob_calls: WorkloadsCaller, bob: User, namespace_a: Namespace, body: dict[str, Any]
) -> None:
    other = make.tenant(namespace_a.cluster, slug="team-b", namespace=f"{namespace_a.name}-b")
    make.member(other, bob)
    asked = bob_calls("GET", "/train")
    assert (asked.status_code, asked.json()["code"]) == (422, "which_team")
    assert "team-a, team-b" in asked.json()["message"]
    assert bob_calls("PUT", "/train?team=team-a", body).status_code == 201


def test_waiting_is_left_to_doors(bob_calls: WorkloadsCaller, body: dict[str, Any]) -> None:
    bob_calls("POST", "", {**body, "name": "train"})
    answer = bob_calls("GET", "/train?wait=60&until=finished")
    assert (answer.status_code, answer.headers["Retry-After"]) == (200, "5")
    assert bob_calls("GET", "/train?wait=x").json()["code"] == "bad_wait"
    assert bob_calls("GET", "/train?until=never").json()["code"] == "bad_until"


def test_lists_come_in_pages(bob_calls: WorkloadsCaller, namespace_a: Namespace, a100: GpuClass, bob: User) -> None:
    for number in range(5):
        running.workload(namespace_a, a100, name=f"w{number}", by=bob)
    first = bob_calls("GET", "?limit=3").json()
    rest = Client().get(first["next"], headers=bob_calls.headers).json()
    assert [item["name"] for item in first["items"] + rest["items"]] == ["w4", "w3", "w2", "w1", "w0"]
    assert rest["next"] is None
