"""Who may choose what happens to a run at the drain of its node, until when, and for which maintenance."""

from __future__ import annotations

import pytest
from django.utils import timezone

from accounts.core.actor import Actor
from accounts.models import Event, User
from operations.maintenance.choices.actions import choose_at_drain
from operations.maintenance.choices.policy import RESTART, STOP, chosen
from operations.maintenance.choices.queries import maintenances_of
from operations.models import Maintenance, MaintenanceNode
from portal.core.errors import Refused
from tenants.models import Membership, Tenant
from tests.operations.maintenance.choices.rows import NODE, Launch, Plan
from tests.support.rows import make
from workloads.models import Run

pytestmark = pytest.mark.django_db


def choose(by: User, row: Maintenance, choice: str = STOP, name: str = "mine") -> str:
    """Returns the code of the refusal, or what is chosen afterwards."""
    try:
        choose_at_drain("team-a", name, row.pk, choice, by=Actor(by, via="page"))
    except Refused as refused:
        return refused.code
    return chosen(Run.objects.get(workload__name=name).drain_choices, row.pk)


def test_a_choice_is_recorded_once_and_can_be_changed_until_the_drain(
    plan: Plan, launched: Launch, alice: User
) -> None:
    launched("mine")
    row = plan()
    assert choose(alice, row) == STOP
    assert choose(alice, row) == STOP, "again changes nothing"
    MaintenanceNode.objects.update(step="held")
    assert choose(alice, row, RESTART) == RESTART
    events = Event.objects.filter(verb="workload.drain_chosen").order_by("pk")
    assert [(one.before["choice"], one.after["choice"]) for one in events] == [("", STOP), (STOP, RESTART)]
    assert events[0].after["maintenance"] == row.pk
    assert choose(alice, row, "leave") == "invalid"
    for step in ("draining", "changing", "waiting", "verifying"):
        MaintenanceNode.objects.update(step=step)
        assert choose(alice, row) == "drain_begun"
    for step in ("releasing", "done"):
        MaintenanceNode.objects.update(step=step)
        assert choose(alice, row) == "not_in_maintenance"
    assert events.count() == 2


def test_who_may_stop_a_run_may_choose_for_it(
    plan: Plan, launched: Launch, team_a: Tenant, alice: User, bob: User, charlie: User, olga: User
) -> None:
    launched("mine")
    row = plan()
    carol, vera = make.user("Carol"), make.user("Vera")
    make.member(team_a, carol, Membership.Role.MANAGER)
    make.member(team_a, vera, Membership.Role.VIEWER)
    for who in (vera, bob):
        Membership.objects.filter(user=bob).update(role="member")
        assert choose(who, row) == "not_allowed"
    assert choose(charlie, row) == "not_found"
    assert choose(carol, row) == STOP
    assert choose(olga, row, RESTART) == RESTART


def test_a_run_that_stops_or_has_ended_has_no_choice(plan: Plan, launched: Launch, alice: User) -> None:
    launched("mine")
    row = plan()
    Run.objects.update(stop_requested_at=timezone.now())
    assert choose(alice, row) == "not_running"
    Run.objects.update(ended_at=timezone.now(), outcome="stopped")
    assert choose(alice, row) == "not_running"


@pytest.mark.parametrize("column", ["cancel_requested_at", "release_requested_at", "ended_at"])
def test_a_maintenance_that_is_to_end_has_no_choice(plan: Plan, launched: Launch, alice: User, column: str) -> None:
    launched("mine")
    row = plan()
    Maintenance.objects.update(**{column: timezone.now()}, outcome="canceled" if column == "ended_at" else "")
    assert choose(alice, row) == "not_in_maintenance"


def test_a_maintenance_of_other_nodes_or_of_none_is_not_told_apart(plan: Plan, launched: Launch, alice: User) -> None:
    launched("mine", "a100-2")
    row = plan()
    assert choose(alice, row) == "not_in_maintenance"
    row.pk += 1
    assert choose(alice, row) == "not_in_maintenance"


def test_a_run_on_several_nodes_has_a_choice_for_each_maintenance(plan: Plan, launched: Launch, alice: User) -> None:
    """Until the drain of any of its nodes begins."""
    run = launched("mine", NODE, "a100-2", "a100-3")
    first, second = plan(NODE), plan("a100-2", "a100-3", "a100-4")
    assert (choose(alice, first), choose(alice, second, RESTART)) == (STOP, RESTART)
    run.refresh_from_db()
    found = maintenances_of(run.workload, run)
    assert [(one.row.pk, one.nodes, one.at_drain.choice) for one in found] == [
        (first.pk, (NODE,), STOP),
        (second.pk, ("a100-2", "a100-3"), RESTART),
    ]
    MaintenanceNode.objects.filter(name="a100-3").update(step="draining")
    assert choose(alice, second) == "drain_begun"
    assert choose(alice, first, RESTART) == RESTART
