"""The choice on the page of a run, in the API and in the operators' preview."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from accounts.models import User
from cluster.models import Cluster
from operations.maintenance.notifications import consequence
from operations.models import MaintenanceNode
from tests.operations.maintenance.choices.rows import NODE, Launch, Plan
from workloads.models import Run

pytestmark = pytest.mark.django_db
PAGE = "/teams/team-a/workloads/mine"
API = "/api/v1/workloads/mine/maintenance"
STOPS, STARTS = "Stop it instead, do not start it again", "Start it again elsewhere instead"


def put(client: Client, pk: int, **body: Any) -> Any:
    return client.put(f"{API}/{pk}", body, content_type="application/json")


def test_the_page_says_the_default_and_has_the_other_choice(
    client: Client, plan: Plan, launched: Launch, alice: User
) -> None:
    launched("mine")
    client.force_login(alice)
    assert STOPS not in client.get(PAGE).content.decode()
    row = plan()
    text = client.get(PAGE).content.decode()
    assert "start again elsewhere (default)" in text
    assert "It is moved off the node at" in text
    assert STOPS in text
    for _twice in range(2):
        answer = client.post(f"{PAGE}/maintenance/{row.pk}", {"at_drain": "stop"})
        assert (answer.status_code, answer["location"]) == (302, PAGE)
    for address in (PAGE, f"{PAGE}/maintenance"):
        text = client.get(address).content.decode()
        assert "stop, do not start again (chosen)" in text
        assert STARTS in text
        assert "does not start again, as was chosen. It has no volume" in text
    MaintenanceNode.objects.update(step="draining")
    text = client.get(PAGE).content.decode()
    assert STARTS not in text
    assert f"The drain of {NODE} has begun: the choice cannot be changed any more." in text


def test_who_may_not_choose_reads_why(client: Client, plan: Plan, launched: Launch, bob: User) -> None:
    launched("mine")
    plan()
    client.force_login(bob)
    text = client.get(PAGE).content.decode()
    assert "start again elsewhere (default)" in text
    assert STOPS not in text
    assert "may stop it." in text


def test_the_fragment_takes_few_queries(
    client: Client, plan: Plan, launched: Launch, alice: User,
    django_assert_max_num_queries: DjangoAssertNumQueries,
) -> None:  # fmt: skip
    launched("mine")
    plan()
    client.force_login(alice)
    client.get(f"{PAGE}/maintenance")
    with django_assert_max_num_queries(9):
        client.get(f"{PAGE}/maintenance")


def test_a_program_reads_and_chooses(client: Client, plan: Plan, launched: Launch, alice: User) -> None:
    launched("mine")
    client.force_login(alice)
    assert client.get(API).json() == {"maintenances": [], "is_known": True}
    row = plan()
    [found] = client.get(API).json()["maintenances"]
    assert (found["id"], found["nodes"], found["reason"]) == (row.pk, [NODE], "A fan.")
    assert (found["at_drain"], found["is_chosen"], found["may_choose"]) == ("restart", False, True)
    for _twice in range(2):
        answer = put(client, row.pk, at_drain="stop")
        assert answer.status_code == 200
        [found] = answer.json()["maintenances"]
        assert (found["at_drain"], found["is_chosen"]) == ("stop", True)
    assert put(client, row.pk, at_drain="leave").status_code == 422
    assert put(client, row.pk, at_drain="stop", more=1).status_code == 422
    other = put(client, row.pk + 1, at_drain="stop")
    assert (other.status_code, other.json()["code"]) == (409, "not_in_maintenance")
    MaintenanceNode.objects.update(step="draining")
    refused = put(client, row.pk, at_drain="restart")
    assert (refused.status_code, refused.json()["code"]) == (409, "drain_begun")
    assert client.get(API).json()["maintenances"][0]["may_choose"] is False
    Run.objects.update(ended_at=timezone.now(), outcome="stopped")
    assert client.get(API).json()["maintenances"] == []


def test_operators_read_how_many_chose_what(client: Client, plan: Plan, launched: Launch, olga: User) -> None:
    row = plan()
    for name, choice in (("one", "stop"), ("two", "stop"), ("three", "restart"), ("four", "")):
        run = launched(name)
        Run.objects.filter(pk=run.pk).update(drain_choices={str(row.pk): choice, str(row.pk + 1): "stop"})
    client.force_login(olga)
    seen = client.get(f"/api/v1/maintenances/{row.pk}").json()["affected"]
    assert seen["choices"] == {"stop": 2, "restart": 1, "undecided": 1, "ends_before": 0, "stays": 0}
    assert sorted((run["at_drain"], run["is_chosen"]) for run in seen["runs"]) == [
        ("restart", False),
        ("restart", True),
        ("stop", True),
        ("stop", True),
    ]
    text = client.get(f"/maintenance/{row.pk}").content.decode()
    assert "At the drain: 2 stop as chosen, 1 starts elsewhere as chosen, 1 starts elsewhere by default." in text
    for name, changed in (
        ("one", {"ends_at": row.starts_at}),
        ("two", {"stop_requested_at": timezone.now()}),
        ("three", {"ends_at": row.starts_at + timedelta(seconds=1)}),
    ):
        Run.objects.filter(workload__name=name).update(**changed)
    seen = client.get(f"/api/v1/maintenances/{row.pk}").json()["affected"]
    assert seen["choices"] == {"stop": 0, "restart": 1, "undecided": 1, "ends_before": 2, "stays": 0}
    assert "1 starts elsewhere by default, 2 end before." in client.get(f"/maintenance/{row.pk}").content.decode()


@pytest.mark.parametrize("choice", ["", "stop"])
def test_a_run_that_ends_before_is_told_so(
    client: Client, plan: Plan, launched: Launch, alice: User, olga: User, choice: str
) -> None:
    """The choice counts if its time limit is extended."""
    run, row = launched("mine"), plan()
    Run.objects.update(ends_at=row.starts_at - timedelta(minutes=1), drain_choices={str(row.pk): choice})
    client.force_login(alice)
    [found] = client.get(API).json()["maintenances"]
    assert (found["at_drain"], found["is_chosen"], found["choice"]) == ("ends_before", False, choice)
    assert "before the maintenance: it is not interrupted." in found["message"]
    text = client.get(PAGE).content.decode()
    assert "nothing: it ends before" in text
    assert "If it is extended until then" in text
    assert ("stop, do not start again (chosen)" if choice else "start again elsewhere (default)") in text
    assert (STARTS if choice else STOPS) in text
    other = "restart" if choice else "stop"
    answer = put(client, row.pk, at_drain=other).json()["maintenances"][0]
    assert (answer["at_drain"], answer["choice"]) == ("ends_before", other)
    Run.objects.update(stop_requested_at=timezone.now())
    text = client.get(PAGE).content.decode()
    assert "It is being stopped already: the maintenance does nothing to it." in text
    assert "If it is extended until then" not in text
    Run.objects.update(stop_requested_at=None, ends_at=row.starts_at + timedelta(minutes=1))
    [found] = client.get(API).json()["maintenances"]
    assert (found["at_drain"], found["is_chosen"]) == (other, True)
    assert consequence(row, Run.objects.get(pk=run.pk)) == found["message"]


def test_a_run_that_nothing_can_move_is_told_so(
    client: Client, plan: Plan, launched: Launch, alice: User, olga: User
) -> None:
    launched("mine")
    row = plan()
    Cluster.objects.update(queue_system=Cluster.QueueSystem.NONE)
    client.force_login(alice)
    for choice in ("", "restart"):
        if choice:
            put(client, row.pk, at_drain=choice)
        [found] = client.get(API).json()["maintenances"]
        assert (found["at_drain"], found["is_chosen"], found["choice"]) == ("stays", False, choice)
        assert "The portal cannot move it." in found["message"]
        text = client.get(PAGE).content.decode()
        assert "it stays until it ends: the drain waits for it" in text
        assert STOPS in text
        assert "start again elsewhere" not in text
    put(client, row.pk, at_drain="stop")
    text = client.get(PAGE).content.decode()
    assert "stop, do not start again (chosen)" in text
    assert "Do not stop it, the drain waits for it" in text
    assert STARTS not in text
    launched("other")
    client.force_login(olga)
    seen = client.get(f"/api/v1/maintenances/{row.pk}").json()["affected"]
    assert seen["choices"] == {"stop": 1, "restart": 0, "undecided": 0, "ends_before": 0, "stays": 1}
    assert sorted(run["at_drain"] for run in seen["runs"]) == ["stays", "stop"]
    text = client.get(f"/maintenance/{row.pk}").content.decode()
    assert "0 start elsewhere by default, 1 cannot be moved: the drain waits for it." in text
