"""The drain follows what was chosen: once, for this maintenance, and not for one that is to end."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.utils import timezone

from accounts.core.actor import Actor
from accounts.models import Delivery, Event, User
from cluster.models import Cluster
from operations.maintenance.affected import on_nodes
from operations.maintenance.choices import leaving
from operations.maintenance.choices.actions import choose_at_drain
from operations.maintenance.choices.policy import RESTART, STAYS, STOP, if_there
from operations.maintenance.notifications import tell_canceled, tell_runs
from operations.maintenance.reconcile import reconcile_maintenance
from operations.models import Maintenance, MaintenanceNode, MaintenanceNotice
from portal.core.due import Deadline
from portal.core.errors import Refused
from tests.operations.maintenance.choices.rows import NODE, Launch, Plan
from tests.operations.maintenance.test_reconcile import Nodes
from workloads.models import Run

pytestmark = pytest.mark.django_db
WHY = "Maintenance of node a100-1: A fan."


def choose(alice: User, row: Maintenance, name: str, choice: str) -> None:
    choose_at_drain("team-a", name, row.pk, choice, by=Actor(alice, via="page"))


def drained(row: Maintenance) -> None:
    """One pass at the start of the drain. The worker finds the rows as they are then."""
    now = timezone.now() - timedelta(minutes=1)
    Maintenance.objects.filter(pk=row.pk).update(holds_from=now, starts_at=now)
    kube: Any = Nodes()
    reconcile_maintenance(Maintenance.objects.get(pk=row.pk), Deadline(), kube=kube)


def states() -> dict[str, str]:
    found = {}
    for run in Run.objects.select_related("workload"):
        stop = f"stop {run.stop_reason}" if run.stop_requested_at else ""
        found[run.workload.name] = f"{stop}{'move' if run.drain_requested_at else ''}"
    return found


def test_runs_are_stopped_or_moved_as_was_chosen_and_once(plan: Plan, launched: Launch, alice: User) -> None:
    row = plan()
    for name, choice in (("stops", STOP), ("moves", RESTART), ("default", "")):
        launched(name)
        if choice:
            choose(alice, row, name, choice)
    for _twice in range(2):
        drained(row)
    assert states() == {"stops": "stop stopped_for_maintenance", "moves": "move", "default": "move"}
    stopped = Run.objects.get(workload__name="stops")
    assert stopped.stop_message == f"{WHY} It was chosen that it stops then, and does not start again."
    assert Event.objects.filter(verb="workload.drain_stopped").count() == 1
    assert Event.objects.filter(verb="workload.drain_requested").count() == 2
    moved = MaintenanceNotice.objects.filter(stage="moved").values_list("run__workload__name", flat=True)
    assert sorted(moved) == ["default", "moves"]
    [mail] = Delivery.objects.filter(subject__contains="stops")
    assert mail.subject == "stops of Team A was stopped for maintenance"
    assert "It has no volume: files are deleted when it stops" in mail.body
    [node] = row.nodes.all()
    assert "3 workloads" in node.problem or "It is not known" in node.problem, "it waits for both"


def test_a_choice_for_a_canceled_maintenance_has_no_effect_on_a_later_one(
    plan: Plan, launched: Launch, alice: User
) -> None:
    launched("mine")
    first = plan()
    choose(alice, first, "mine", STOP)
    Maintenance.objects.update(cancel_requested_at=timezone.now())
    kube: Any = Nodes()
    reconcile_maintenance(Maintenance.objects.get(), Deadline(), kube=kube)
    assert states() == {"mine": ""}
    assert Maintenance.objects.get().outcome == "canceled"
    drained(plan())
    assert states() == {"mine": "move"}


@pytest.mark.parametrize("column", ["cancel_requested_at", "release_requested_at"])
def test_nobody_is_stopped_or_moved_for_a_maintenance_that_is_to_end(
    plan: Plan, launched: Launch, alice: User, column: str
) -> None:
    """The worker died when the step had begun, and an operator canceled before the next one came."""
    row = plan()
    for name in ("stops", "default"):
        launched(name)
    choose(alice, row, "stops", STOP)
    MaintenanceNode.objects.update(step="draining")
    Maintenance.objects.update(**{column: timezone.now()})
    drained(row)
    assert states() == {"stops": "", "default": ""}


def test_a_worker_that_dies_within_leaves_nothing_half_done(
    plan: Plan, launched: Launch, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = plan()
    for name in ("stops", "default"):
        launched(name)
    choose(alice, row, "stops", STOP)
    MaintenanceNode.objects.update(step="draining")

    def dies(*_args: object, **_more: object) -> int:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(leaving, "request_drain", dies)
        with pytest.raises(KeyboardInterrupt):
            leaving.leave_node(row, list(Run.objects.values_list("pk", flat=True)), why=WHY)
    assert states() == {"stops": "", "default": ""}
    assert not Delivery.objects.exists()
    drained(row)
    assert states() == {"stops": "stop stopped_for_maintenance", "default": "move"}


def test_a_stop_or_move_that_was_asked_before_stays(plan: Plan, launched: Launch, alice: User) -> None:
    row = plan()
    for name in ("stopping", "moving"):
        launched(name)
        choose(alice, row, name, STOP)
    Run.objects.filter(workload__name="stopping").update(stop_requested_at=timezone.now())
    Run.objects.filter(workload__name="moving").update(drain_requested_at=timezone.now())
    drained(row)
    assert Run.objects.get(workload__name="stopping").stop_reason == "", "a person stopped it"
    assert states()["moving"] == "move", "another node of it was drained before"
    assert not Event.objects.filter(verb="workload.drain_stopped").exists()


def test_a_run_that_was_stopped_is_not_told_that_it_continues(
    plan: Plan, launched: Launch, alice: User, cluster: Cluster
) -> None:
    row = plan()
    launched("mine")
    tell_runs(row, on_nodes(cluster.pk, [NODE]), now=timezone.now())
    choose(alice, row, "mine", STOP)
    drained(row)
    before = Delivery.objects.count()
    tell_canceled(row)
    assert Delivery.objects.count() == before


def test_the_announcement_says_the_default_the_choice_and_what_is_lost(
    plan: Plan, launched: Launch, alice: User, cluster: Cluster
) -> None:
    row = plan()
    launched("mine")
    Run.objects.update(spec=Run.objects.get().spec | {"claim": "data"})
    tell_runs(row, on_nodes(cluster.pk, [NODE]), now=timezone.now())
    [mail] = Delivery.objects.all()
    assert "It is moved off the node at" in mail.body
    assert "Its programs get SIGTERM and up to 30 s to save their state; the portal makes no checkpoint" in mail.body
    assert "Files in /home/work are kept on the volume data; memory is lost." in mail.body
    assert "This happens by default. Until the drain begins you can choose that it is stopped then" in mail.body
    assert "gpu maintenance mine --at-drain stop" in mail.body
    assert mail.body.endswith("/teams/team-a/workloads/mine")

    choose(alice, row, "mine", STOP)
    MaintenanceNotice.objects.update(told_at=timezone.now() - timedelta(hours=9))
    tell_runs(row, on_nodes(cluster.pk, [NODE]), now=row.starts_at - timedelta(minutes=30))
    reminder = Delivery.objects.latest("pk")
    assert "and does not start again, as was chosen. Files in /home/work are kept on the volume data" in reminder.body
    assert "This was chosen. Until the drain begins you can change it" in reminder.body
    assert "--at-drain restart" in reminder.body


@pytest.mark.django_db(transaction=True)
def test_a_choice_that_was_accepted_is_followed_and_none_is_accepted_after_it_was_read(
    plan: Plan, launched: Launch, alice: User
) -> None:
    """The drain begins while a choice is being written, and while the drain reads it another one comes."""
    row, run = plan(step="held"), launched("mine")
    is_written, goes_on, problems = threading.Event(), threading.Event(), []

    def write() -> None:
        with transaction.atomic():
            choose(alice, row, "mine", STOP)
            is_written.set()
            assert goes_on.wait(20)

    def leave() -> None:
        leaving.leave_node(row, [run.pk], why=WHY)

    def thread(what: Callable[[], None]) -> threading.Thread:
        def body() -> None:
            try:
                what()
            except BaseException as problem:
                problems.append(problem)
            finally:
                connection.close()

        started = threading.Thread(target=body, daemon=True)
        started.start()
        return started

    writer = thread(write)
    assert is_written.wait(20)
    MaintenanceNode.objects.update(step="draining")
    worker = thread(leave)
    worker.join(0.5)
    assert worker.is_alive(), "it waits for the choice"
    goes_on.set()
    writer.join(20)
    worker.join(20)
    assert problems == []
    assert states() == {"mine": "stop stopped_for_maintenance"}
    with pytest.raises(Refused):
        choose(alice, row, "mine", RESTART)


@pytest.mark.parametrize("column", ["cancel_requested_at", "release_requested_at", "ended_at"])
def test_nobody_is_asked_to_leave_for_a_maintenance_that_was_ended_while_the_worker_was_at_work(
    plan: Plan, launched: Launch, alice: User, column: str
) -> None:
    row = plan(step="held")
    runs = [launched("stops"), launched("moves")]
    choose(alice, row, "stops", STOP)
    # The worker has the row as it was.
    outcome = {"outcome": Maintenance.Outcome.CANCELED} if column == "ended_at" else {}
    Maintenance.objects.filter(pk=row.pk).update(**{column: timezone.now()}, **outcome)

    assert leaving.leave_node(row, [run.pk for run in runs], why=WHY) == 0
    assert states() == {"stops": "", "moves": ""}


def test_a_stop_is_followed_after_an_earlier_order_that_nothing_carries_out(
    plan: Plan, launched: Launch, alice: User, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without Kueue nothing is moved, and the order of an earlier maintenance stays on the run."""
    monkeypatch.setattr(Cluster, "has_kueue", False)
    row, run = plan(step="held"), launched("stops")
    choose(alice, row, "stops", STOP)
    Run.objects.update(drain_requested_at=timezone.now(), drain_reason="An earlier maintenance.")

    assert leaving.leave_node(row, [run.pk], why=WHY) == 1
    assert states()["stops"].startswith("stop stopped_for_maintenance")


def test_without_a_queue_nobody_is_asked_to_move_and_all_are_told_so(
    plan: Plan, launched: Launch, alice: User, cluster: Cluster
) -> None:
    """The page of such a run would say for as long as it runs that it is being moved."""
    Cluster.objects.update(queue_system=Cluster.QueueSystem.NONE)
    row = plan()
    for name, choice in (("stops", STOP), ("stays", ""), ("kept", RESTART)):
        launched(name)
        if choice:
            choose(alice, row, name, choice)
    tell_runs(Maintenance.objects.get(), on_nodes(cluster.pk, [NODE]), now=timezone.now())
    for name in ("stays", "kept"):
        mail = Delivery.objects.get(subject__contains=f": {name} of")
        assert "The portal cannot move it. Stop it before the maintenance, or the maintenance waits for" in mail.body
        assert "This happens by default." in mail.body
        assert "--at-drain stop" in mail.body
    drained(row)
    assert states() == {"stops": "stop stopped_for_maintenance", "stays": "", "kept": ""}
    assert not MaintenanceNotice.objects.filter(stage="moved").exists()
    assert not Event.objects.filter(verb="workload.drain_requested").exists()


@pytest.mark.parametrize("choice", ["", STOP])
def test_a_run_whose_time_limit_has_come_is_left_to_it(
    plan: Plan, launched: Launch, alice: User, cluster: Cluster, choice: str
) -> None:
    """Its people were told that the maintenance does not interrupt it. If it is extended, it leaves then."""
    row = plan()
    launched("mine")
    Run.objects.update(ends_at=row.starts_at, drain_choices={str(row.pk): choice})
    tell_runs(row, on_nodes(cluster.pk, [NODE]), now=timezone.now())
    body = Delivery.objects.get().body
    assert "before the maintenance: it is not interrupted." in body
    assert "--at-drain" not in body
    Run.objects.update(ends_at=timezone.now() - timedelta(minutes=2))
    drained(row)
    assert states() == {"mine": ""}
    Run.objects.update(ends_at=timezone.now() + timedelta(hours=1))
    drained(row)
    assert states() == {"mine": "stop stopped_for_maintenance" if choice else "move"}


@pytest.mark.parametrize(
    ("choice", "has_queue", "is_leaving", "what"),
    [
        ("", True, False, RESTART),
        (RESTART, True, False, RESTART),
        (STOP, True, False, STOP),
        (STOP, True, True, RESTART),
        ("", False, False, STAYS),
        (RESTART, False, False, STAYS),
        ("", False, True, STAYS),
        (STOP, False, False, STOP),
        (STOP, False, True, STOP),
    ],
)
def test_what_the_drain_does_to_a_run_that_is_there(choice: str, has_queue: bool, is_leaving: bool, what: str) -> None:
    assert if_there(choice, has_queue=has_queue, is_leaving=is_leaving) == what
