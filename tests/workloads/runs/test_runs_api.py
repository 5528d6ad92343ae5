"""Runs in the API: each run has its number and its own end."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import transaction
from django.test import Client
from django.utils import timezone

from accounts.core.actor import Actor
from accounts.events.actions import record
from accounts.models import User
from catalog.models import GpuClass, Image
from tenants.models import Namespace, Tenant
from tests.support.database_roles import as_owner
from tests.support.http.callers import WorkloadsCaller
from tests.support.rows import make, running
from workloads.interruption.queries import REQUEUED
from workloads.launch import actions
from workloads.models import Run, Workload
from workloads.runs import requeue, restart
from workloads.status import outcome
from workloads.status.observations import wait_conditions

pytestmark = pytest.mark.django_db
JOB = {"kind": "job", "units": 1, "image": "python", "command": ["python", "train.py"]}


@pytest.fixture
def body(a100: GpuClass) -> dict[str, Any]:
    return {**JOB, "gpu_class": a100.slug}


@pytest.fixture
def bob_calls(granted: Tenant, bob: User, images: list[Image], body: dict[str, Any]) -> WorkloadsCaller:
    """Bob's script, which has declared the job `train`."""
    calls = WorkloadsCaller(bob, ["read", "launch"])
    assert calls("PUT", "/train", body).status_code == 201
    return calls


def end(number: int, **how: Any) -> None:
    values = {"outcome": "failed", "reason": "crashed", "message": "It ended with exit code 3.", "exit_code": 3}
    Run.objects.filter(number=number).update(ended_at=timezone.now(), **{**values, **how})


# ---- runs by number ----------------------------------------------------------------------------------------------


def test_the_answer_to_a_start_says_where_its_run_is(bob_calls: WorkloadsCaller) -> None:
    started = bob_calls("POST", "/train/runs")
    assert started.headers["Location"] == "http://testserver/api/v1/workloads/train/runs/1?team=team-a"
    run = Client().get(started.headers["Location"], headers=bob_calls.headers).json()
    assert (run["number"], run["workload"], run["team"]) == (1, "train", "team-a")
    assert run["url"] == started.json()["url"]
    assert run["status"] == started.json()["status"]
    assert run.items() >= started.json()["run"].items()


def test_an_earlier_run_keeps_its_own_end(bob_calls: WorkloadsCaller) -> None:
    bob_calls("POST", "/train/runs")
    end(1)
    bob_calls("POST", "/train/runs")
    first, second = bob_calls("GET", "/train/runs/1").json(), bob_calls("GET", "/train/runs/2").json()
    assert (first["outcome"], first["exit_code"], first["followed_by"]) == ("failed", 3, None)
    told = {name: first["status"][name] for name in ("phase", "reason", "message", "facts", "verdict", "actions")}
    assert told == {
        "phase": "failed",
        "reason": "crashed",
        "message": "It ended with exit code 3.",
        "facts": {"exit_code": 3},
        "verdict": "over",
        "actions": [],
    }
    assert (second["ended_at"], second["outcome"], second["status"]["phase"]) == (None, "", "unknown")


@pytest.mark.parametrize("number", ["0", "2", "2147483648", "99999999999999999999"])
def test_a_number_without_a_run_is_not_there(bob_calls: WorkloadsCaller, number: str) -> None:
    bob_calls("POST", "/train/runs")
    answer = bob_calls("GET", f"/train/runs/{number}")
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


def test_runs_come_in_pages_newest_first(bob_calls: WorkloadsCaller, django_assert_num_queries: Any) -> None:
    for number in range(1, 6):
        bob_calls("POST", "/train/runs")
        end(number)
    first = bob_calls("GET", "/train/runs?limit=3").json()
    rest = Client().get(first["next"], headers=bob_calls.headers).json()
    assert [run["number"] for run in first["items"] + rest["items"]] == [5, 4, 3, 2, 1]
    assert rest["next"] is None
    with django_assert_num_queries(4):  # token; team, workload; runs with their watches
        bob_calls("GET", "/train/runs")


def test_what_is_interrupted_names_the_run_in_its_place(bob_calls: WorkloadsCaller) -> None:
    bob_calls("POST", "/train/runs")
    back = {"outcome": "stopped", "reason": outcome.TAKEN_BACK}
    end(1, **back, message=f"{outcome.UNITS_TAKEN_BACK} {outcome.RESTARTS_NOTE}")
    assert bob_calls("GET", "/train/runs/1").json()["followed_by"] is None
    # A user started the run instead of the one that did not follow.
    bob_calls("POST", "/train/runs")
    assert bob_calls("GET", "/train/runs/1").json()["followed_by"] is None
    train = Workload.objects.get(name="train")
    with transaction.atomic():
        record(requeue.REQUEUE_RULE, REQUEUED, train, tenant="team-a", after={"run": 2})
    assert bob_calls("GET", "/train/runs/1").json()["followed_by"] == 2
    # Holds whatever the message contains.
    end(1, **back, message=outcome.UNITS_TAKEN_BACK)
    assert bob_calls("GET", "/train/runs/1").json()["followed_by"] == 2


def test_a_run_that_is_to_follow_has_its_number_already(bob_calls: WorkloadsCaller, bob: User) -> None:
    bob_calls("POST", "/train/runs")
    assert bob_calls("GET", "/train/runs/2").status_code == 404
    restart.restart("team-a", "train", by=Actor(bob, via="page"))
    run = bob_calls("GET", "/train/runs/2").json()
    assert (run["number"], run["requested_at"], run["outcome"], run["idle"]) == (2, None, "", None)
    assert (run["status"]["phase"], run["status"]["reason"]) == ("queued", "follows")
    assert run["status"]["message"] == "It starts when run 1 has ended, with the workload's configuration at that time."
    actions.stop("team-a", "train", by=Actor(bob, via="page"))
    assert bob_calls("GET", "/train/runs/2").status_code == 404


# ---- long polling ------------------------------------------------------------------------------------------------


def test_the_end_of_a_run_is_not_that_of_the_next(
    bob_calls: WorkloadsCaller, namespace_a: Namespace, bob: User
) -> None:
    def reached(until: str, number: int | None = None) -> bool:
        return wait_conditions.has_reached(namespace_a.name, "train", until, number)

    bob_calls("POST", "/train/runs")
    assert not reached("finished", 1)
    assert reached("finished", 2)  # no need to wait
    restart.restart("team-a", "train", by=Actor(bob, via="page"))
    assert not reached("finished", 2)
    end(1)
    assert reached("finished", 1)
    assert reached("finished")
    assert not reached("finished", 2)
    restart.start_pending(Workload.objects.get())
    assert not reached("finished", 2)
    assert not reached("finished")
    # An ended run cannot become ready, so that the call does not wait.
    assert reached("ready", 1)
    assert reached("admitted", 1)
    end(2)
    assert reached("ready", 2)


def test_nobody_waits_for_what_follows_something_that_is_deleted(
    bob_calls: WorkloadsCaller, namespace_a: Namespace, bob: User
) -> None:
    bob_calls("POST", "/train/runs")
    restart.restart("team-a", "train", by=Actor(bob, via="page"))
    actions.delete("team-a", "train", by=Actor(bob, via="page"))
    assert bob_calls("GET", "/train/runs/2").status_code == 404
    assert wait_conditions.has_reached(namespace_a.name, "train", "finished", 2)


def test_web_says_when_to_come_back(bob_calls: WorkloadsCaller) -> None:
    bob_calls("POST", "/train/runs")
    answer = bob_calls("GET", "/train/runs/1?wait=60&until=finished")
    assert (answer.status_code, answer.headers["Retry-After"]) == (200, "5")
    assert bob_calls("GET", "/train/runs/1?wait=x").json()["code"] == "bad_wait"
    assert bob_calls("GET", "/train/runs/1?until=never").json()["code"] == "bad_until"


# ---- request bodies ------------------------------------------------------------------------------------------------


def start(calls: WorkloadsCaller, text: str, content_type: str, tenant: str = "team-a") -> Any:
    path = f"/api/v1/workloads/train/runs?team={tenant}"
    return Client().generic("POST", path, text, content_type=content_type, headers=calls.headers)


@pytest.mark.parametrize("content_type", ["application/x-www-form-urlencoded", "text/plain", "application/json", ""])
def test_an_empty_body_is_none_whatever_it_is_called(bob_calls: WorkloadsCaller, content_type: str) -> None:
    assert start(bob_calls, "", content_type).status_code == 201


@pytest.mark.parametrize("content_type", ["application/x-www-form-urlencoded", "text/plain", "multipart/form-data", ""])
def test_a_body_that_is_not_json_is_refused(bob_calls: WorkloadsCaller, content_type: str, charlie: User) -> None:
    refused = start(bob_calls, '{"accept_terms": 1}', content_type)
    assert (refused.status_code, refused.json()["code"]) == (415, "unsupported_media_type")
    assert start(WorkloadsCaller(charlie, ["launch"]), "x", content_type).status_code == 404
    assert not Run.objects.exists()


# ---- needs_run ---------------------------------------------------------------------------------------------------


def test_a_declared_job_says_whether_it_needs_a_run(
    bob_calls: WorkloadsCaller, body: dict[str, Any], bob: User
) -> None:
    def needs_run() -> bool:
        put, got = bob_calls("PUT", "/train", body), bob_calls("GET", "/train")
        assert (put.status_code, put.json()["needs_run"]) == (200, got.json()["needs_run"])
        return bool(got.json()["needs_run"])

    assert needs_run()
    bob_calls("POST", "/train/runs")
    assert not needs_run()
    restart.restart("team-a", "train", by=Actor(bob, via="page"))
    end(1)
    assert not needs_run()  # the next run starts by itself
    restart.start_pending(Workload.objects.get())
    end(2)
    assert needs_run()
    assert bob_calls("DELETE", "/train").json()["needs_run"] is False


def test_a_notebook_needs_none(bob_calls: WorkloadsCaller, body: dict[str, Any]) -> None:
    notebook = {**body, "kind": "notebook", "image": "minimal", "command": []}
    assert bob_calls("PUT", "/study", notebook).json()["needs_run"] is False


# ---- deleting ----------------------------------------------------------------------------------------------------


def test_deleting_is_accepted_and_goes_on_afterwards(
    bob_calls: WorkloadsCaller, namespace_a: Namespace, a100: GpuClass, bob: User
) -> None:
    never_started = bob_calls("DELETE", "/train")
    assert never_started.status_code == 202
    assert (never_started.json()["name"], never_started.json()["status"]["message"]) == ("train", "Being deleted.")
    assert bob_calls("DELETE", "/train").status_code == 404

    running.workload(namespace_a, a100, name="runs", by=bob, kind="job")
    deleted = bob_calls("DELETE", "/runs")
    assert (deleted.status_code, deleted.json()["status"]["phase"]) == (202, "stopping")
    assert bob_calls("GET", "/runs").json()["status"] == deleted.json()["status"]
    Workload.objects.update(deleted_at=timezone.now())
    assert bob_calls("GET", "/runs").status_code == 404


def test_a_worker_that_is_quicker_than_the_answer_changes_nothing_in_it(
    bob_calls: WorkloadsCaller, monkeypatch: pytest.MonkeyPatch
) -> None:
    delete = actions.delete

    def delete_and_tidy(*names: str, by: Actor) -> Workload:
        workload = delete(*names, by=by)
        with as_owner():
            Workload.objects.filter(pk=workload.pk).update(deleted_at=timezone.now())
        return workload

    monkeypatch.setattr(actions, "delete", delete_and_tidy)
    assert bob_calls("DELETE", "/train").status_code == 202


# ---- runs of other teams -------------------------------------------------------------------------------------------


def test_runs_are_their_teams(bob_calls: WorkloadsCaller, charlie: User, namespace_a: Namespace) -> None:
    bob_calls("POST", "/train/runs")
    make.member(make.tenant(namespace_a.cluster, slug="team-c", namespace=f"{namespace_a.name}-c"), charlie)
    stranger = WorkloadsCaller(charlie, ["read", "launch"])
    for path in ("/train/runs", "/train/runs/1", "/train/runs/1?wait=60&until=bad"):
        separator = "&" if "?" in path else "?"
        assert stranger("GET", f"{path}{separator}team=team-a").status_code == 404
        assert stranger("GET", path).status_code == 404
    reads = WorkloadsCaller(charlie, ["launch"])
    assert reads("GET", "/train/runs").json()["code"] == "missing_scope"
