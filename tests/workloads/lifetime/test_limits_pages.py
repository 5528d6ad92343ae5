"""Time limits and idle stops on pages and in the API: what each user sees, and what the two verbs answer."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.api_tokens import actions as api_token_actions
from accounts.core.actor import Actor
from accounts.models import Event, User
from catalog.models import GpuClass
from tenants.models import Namespace
from tests.support.rows import running
from workloads.lifetime.idle import reconcile as idle_reconcile
from workloads.models import NotebookWatch, Run, Workload

pytestmark = pytest.mark.django_db
PAGE = "/teams/team-a/workloads/one"
NOW = timezone.now().replace(microsecond=0)


@pytest.fixture
def runs(namespace_a: Namespace, a100: GpuClass, alice: User) -> Workload:
    """Alice's notebook: 8 h of at most 12 h, one hour used; idle notebooks stop after an hour."""
    GpuClass.objects.filter(pk=a100.pk).update(run_hours_limit=12, idle_stop_minutes=60)
    a100.refresh_from_db()
    found = running.workload(namespace_a, a100, by=alice, options={"run_hours": 8})
    running.make_ready(found)
    Run.objects.update(ends_at=timezone.now() + timedelta(hours=7))
    idle_reconcile.start_watch(found.runs.get())
    NotebookWatch.objects.update(
        asked_at=NOW,
        answered_at=NOW,
        last_activity=NOW - timedelta(minutes=20),
        evidence={"computing": 0, "idle": 2, "terminals": 0, "connections": 1},
    )
    return found


def page(client: Client, who: User, path: str = PAGE) -> str:
    client.force_login(who)
    return client.get(path).content.decode()


def test_the_page_says_when_it_ends_and_how_it_is_used(runs: Workload, alice: User, client: Client) -> None:
    text = page(client, alice)
    assert "8 h from its start" in text
    assert 'data-when="countdown"' in text
    assert "Additional hours, 1 to 4" in text
    assert "stopped after 1 h without activity" in text
    assert "2 kernels idle; 1 browser connection; checked at" in text
    assert "Keep running while idle" in text


def test_what_is_about_to_stop_it_stands_on_top_for_everybody(runs: Workload, bob: User, client: Client) -> None:
    before = page(client, bob)
    assert "is stopped" not in before
    Run.objects.update(ends_at=timezone.now() + timedelta(minutes=20))
    NotebookWatch.objects.update(warned_at=NOW, stops_at=NOW + timedelta(minutes=10))
    text = page(client, bob)
    assert "It reaches its time limit at" in text
    assert "It is idle and is stopped at" in text
    assert "Only the user who launched it, owners and managers of Team A, and operators may extend it." in text
    NotebookWatch.objects.update(problem="It does not answer.")
    assert "It is not stopped until it responds." in page(client, bob)


def test_the_list_says_it_too(runs: Workload, alice: User, client: Client) -> None:
    assert "stops <time" in page(client, alice, "/teams/team-a/workloads")
    NotebookWatch.objects.update(warned_at=NOW, stops_at=NOW + timedelta(minutes=10))
    assert "idle, stops <time" in page(client, alice, "/teams/team-a/workloads")
    Run.objects.update(ended_at=timezone.now(), outcome="stopped")
    text = page(client, alice, "/teams/team-a/workloads")
    assert "stops <time" not in text


def test_what_has_no_rule_shows_none(namespace_a: Namespace, a100: GpuClass, alice: User, client: Client) -> None:
    running.make_ready(running.workload(namespace_a, a100, by=alice))
    text = page(client, alice)
    assert 'id="limits"' in text
    assert "Limits</h2>" not in text


def test_the_buttons(runs: Workload, alice: User, client: Client) -> None:
    client.force_login(alice)
    before = Run.objects.get().ends_at
    assert before is not None
    assert client.post(f"{PAGE}/extend", {"hours": "2"}).headers["Location"] == PAGE
    assert Run.objects.get().ends_at == before + timedelta(hours=2)
    assert "10 h from its start, including 2 h added" in page(client, alice)
    assert client.post(f"{PAGE}/keep", {"hours": "3", "reason": "a demo at four"}).headers["Location"] == PAGE
    text = page(client, alice)
    assert "Kept running until" in text
    assert "a demo at four" in text
    assert "extended the time limit of" in text, "the event"


@pytest.mark.parametrize("hours", ["", "x", "-1", "5", "99999999"])
def test_what_is_no_number_or_too_much_is_refused_with_what_is_possible(
    runs: Workload, alice: User, client: Client, hours: str
) -> None:
    client.force_login(alice)
    answer = client.post(f"{PAGE}/extend", {"hours": hours})
    assert answer.status_code == 422
    assert "Request 1 to 4 h." in answer.content.decode()


def test_the_part_that_is_fetched_again_is_that_of_the_page(runs: Workload, alice: User, client: Client) -> None:
    part = page(client, alice, f"{PAGE}/limits")
    assert part.strip().startswith('<div id="limits"')
    assert "Additional hours, 1 to 4" in part


def test_strangers_get_nothing(runs: Workload, charlie: User, client: Client) -> None:
    client.force_login(charlie)
    assert client.get(f"{PAGE}/limits").status_code == 404
    assert client.post(f"{PAGE}/extend", {"hours": "1"}).status_code == 404
    assert client.post(f"{PAGE}/keep", {"hours": "1", "reason": "x"}).status_code == 404


# ---- the API ---------------------------------------------------------------------------------------------------------


def call(client: Client, who: User, method: str, path: str, body: Any = None, scopes: str = "read launch") -> Any:
    by = Actor(user=who, via="page")
    name = f"t{Event.objects.count()}"
    _, token = api_token_actions.create_token(name=name, scopes=scopes.split(), expires_in_days=1, by=by)
    headers = {"Authorization": f"Bearer {token}"}
    answer = client.generic(method, f"/api/v1/workloads/one{path}", body or "", "application/json", headers=headers)
    return answer.status_code, answer.json()


def test_the_api_tells_the_end_and_the_use(runs: Workload, alice: User, client: Client) -> None:
    status, body = call(client, alice, "GET", "")
    run = body["run"]
    assert status == 200
    assert (run["run_minutes"], run["extended_minutes"], run["idle_stop_minutes"]) == (480, 0, 60)
    assert run["ends_at"] is not None
    assert run["idle"]["evidence"] == {"computing": 0, "idle": 2, "terminals": 0, "connections": 1}
    assert (run["idle"]["stops_at"], run["idle"]["kept_until"]) == (None, None)


def test_a_run_of_an_older_release_has_no_end(runs: Workload, alice: User, client: Client) -> None:
    run = Run.objects.get()
    NotebookWatch.objects.all().delete()
    for key in ("run_minutes", "idle_stop_minutes"):
        del run.spec[key]
    run.ends_at = None
    run.save()
    _, body = call(client, alice, "GET", "")
    assert [body["run"][key] for key in ("run_minutes", "ends_at", "idle_stop_minutes", "idle")] == [None] * 4


def test_extending_and_keeping_by_the_api(runs: Workload, alice: User, client: Client) -> None:
    status, body = call(client, alice, "POST", "/extend", '{"hours": 4}')
    assert (status, body["run"]["extended_minutes"]) == (200, 240)
    status, body = call(client, alice, "POST", "/extend", '{"hours": 1}')
    assert (status, body["code"]) == (422, "exceeds_run_time")
    status, body = call(client, alice, "POST", "/keep", '{"hours": 2, "reason": "a demo"}')
    assert (status, body["run"]["idle"]["kept_reason"]) == (200, "a demo")
    status, body = call(client, alice, "POST", "/keep", '{"hours": 2, "reason": ""}')
    assert (status, body["code"], body["field"]) == (422, "no_reason", "reason")
    assert call(client, alice, "POST", "/keep", '{"hours": 2, "why": "x"}')[1]["code"] == "unknown_field"


def test_who_may_by_the_api(runs: Workload, alice: User, bob: User, charlie: User, client: Client) -> None:
    assert call(client, bob, "POST", "/extend", '{"hours": 1}')[0] == 403
    assert call(client, alice, "POST", "/extend", '{"hours": 1}', scopes="read")[1]["code"] == "missing_scope"
    for body in ('{"hours": 1}', "{}"):
        assert call(client, charlie, "POST", "/extend?team=team-a", body)[0] == 404
        assert call(client, charlie, "POST", "/keep?team=team-a", body)[0] == 404


@pytest.mark.parametrize("path", [PAGE, f"{PAGE}/limits", "/teams/team-a/workloads"])
def test_it_costs_the_page_no_query(runs: Workload, alice: User, client: Client, path: str) -> None:
    client.force_login(alice)
    client.get(path)
    with CaptureQueriesContext(connection) as watched:
        client.get(path)
    NotebookWatch.objects.all().delete()
    Run.objects.update(ends_at=None)
    with CaptureQueriesContext(connection) as free:
        client.get(path)
    assert len(watched) == len(free)
