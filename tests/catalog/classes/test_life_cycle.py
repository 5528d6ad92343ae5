"""Holding, retiring, closing and dismissing: who may, what is refused, what is recorded and who is notified."""

from __future__ import annotations

import io
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.core.management import call_command
from django.utils import timezone

from accounts.core.actor import Actor, system_actor
from accounts.models import Delivery, Event, User
from catalog.classes import actions, life_cycle, policy
from catalog.classes.proposals import actions as proposal_actions
from catalog.classes.proposals import queries
from catalog.models import GpuClass, Pool
from portal.core.errors import Refused
from tenants.models import Membership, Namespace, Tenant
from tests.support.rows import make, mirrored, running
from workloads.models import Run, Workload

BY = system_actor("test")
NOW = datetime(2026, 11, 21, 11, 0, tzinfo=UTC)


def refused(verb: Callable[..., Any], *args: Any, by: Actor = BY, **values: Any) -> str:
    with pytest.raises(Refused) as found:
        verb(*args, by=by, **values)
    return found.value.code


# ---- sentences -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("since", "until", "text"),
    [
        (None, None, ""),
        (
            NOW - timedelta(hours=1, minutes=50),
            NOW + timedelta(hours=3),
            "Scheduling of A100 has been paused since 09:10 for a driver update; expected to resume at 14:00.",
        ),
        (
            NOW - timedelta(days=2),
            NOW - timedelta(hours=1),
            "Scheduling of A100 has been paused since 11:00 on 19 Nov 2026 for a driver update; it was expected to "
            "resume at 10:00.",
        ),
        (NOW, None, "Scheduling of A100 has been paused since 11:00 for a driver update; no end is set."),
    ],
)
def test_what_is_said_of_a_hold(since: datetime | None, until: datetime | None, text: str) -> None:
    held = GpuClass(name="A100", held_since=since, held_until=until, held_reason="a driver update" if since else "")
    assert life_cycle.hold_sentence(held, now=NOW) == text
    assert policy.is_held(held) is (since is not None)


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"life_cycle": "active", "successor": "H200"}, ""),
        ({"life_cycle": "retiring"}, "A100 is being retired. Running workloads continue."),
        (
            {"life_cycle": "retiring", "runs_until": NOW, "successor": "H200", "message": "Thank you"},
            "A100 is being retired. Running workloads may continue until 21 Nov 2026, 11:00. Its successor is H200. "
            "Thank you.",
        ),
        ({"life_cycle": "retired", "successor": "H200"}, "A100 is retired. Its successor is H200."),
    ],
)
def test_what_is_said_of_an_end(values: dict[str, Any], text: str) -> None:
    given = {"name": "A100", "successor": "", "message": "", "runs_until": None, **values}
    assert life_cycle.retirement_sentence(**given) == text


# ---- pausing a class -----------------------------------------------------------------------------------------------


def test_a_hold_is_written_down_and_is_work_for_the_pool(a100: GpuClass) -> None:
    actions.ensure_pool(a100.cluster)
    before = Pool.objects.get().generation
    until = timezone.now() + timedelta(hours=3)
    held = actions.hold_class(a100.pk, reason=" a driver  update. ", until=until, by=BY)
    assert (held.held_reason, held.held_until) == ("a driver update", until)
    since = held.held_since
    held = actions.hold_class(a100.pk, reason="a longer update", until=None, by=BY)
    assert (held.held_since, held.held_until) == (since, None), "held since the first time"
    released = actions.release_class(a100.pk, by=BY)
    assert (released.held_since, released.held_until, released.held_reason) == (None, None, "")
    assert Pool.objects.get().generation == before + 3
    verbs = list(Event.objects.order_by("pk").values_list("verb", flat=True))
    assert verbs == ["class.held", "class.held", "class.released"]
    assert Event.objects.get(verb="class.released").before["held_reason"] == "a longer update"


def test_what_cannot_be_held_or_released_is_refused_and_nothing_is_changed(
    a100: GpuClass, alice: User, dana: User
) -> None:
    past = timezone.now() - timedelta(minutes=1)
    assert refused(actions.hold_class, a100.pk, reason="  ", until=None) == "reason_missing"
    assert refused(actions.hold_class, a100.pk, reason="x" * 201, until=None) == "reason_missing"
    assert refused(actions.hold_class, a100.pk, reason="x", until=past) == "bad_period"
    assert refused(actions.release_class, a100.pk) == "not_held"
    assert refused(actions.hold_class, 0, reason="x", until=None) == "not_found"
    for who in (alice, dana):
        by = Actor(who, via="page")
        assert refused(actions.hold_class, a100.pk, reason="x", until=None, by=by) == "not_allowed"
        assert refused(actions.release_class, a100.pk, by=by) == "not_allowed"
    GpuClass.objects.filter(pk=a100.pk).update(life_cycle="draft")
    assert refused(actions.hold_class, a100.pk, reason="x", until=None) == "not_open"
    assert not Event.objects.exists()


# ---- retiring and closing a class ----------------------------------------------------------------------------------


@pytest.fixture
def h200(a100: GpuClass) -> GpuClass:
    return make.gpu_class(a100.cluster, slug="h200", name="H200", node_labels={"gpu": "h200"})


def test_owners_of_teams_that_hold_units_are_told_when_a_class_starts_to_retire(
    a100: GpuClass, h200: GpuClass, team_a: Tenant, alice: User, charlie: User
) -> None:
    make.grant(team_a, a100, units=2)
    other = make.tenant(a100.cluster, slug="team-b", namespace="team-b-holds-none")
    make.member(other, charlie, Membership.Role.OWNER)
    until = timezone.now() + timedelta(days=40)
    found = actions.retire_class(a100.pk, successor="h200", message="Too old", runs_until=until, by=BY)
    assert (found.life_cycle, found.successor, found.runs_until) == ("retiring", h200, until)
    letter = Delivery.objects.get()
    assert letter.user == alice
    assert letter.subject == f"{a100.name} is being retired"
    assert "Its successor is H200. Too old." in letter.body
    assert letter.body.endswith(f"/catalog/{a100.slug}")
    assert letter.event.after["successor"] == "h200"

    back = actions.activate(a100.pk, by=BY)
    assert (back.successor, back.retiring_message, back.runs_until) == (None, "", None)


def test_a_successor_is_another_active_class_and_an_end_lies_ahead(a100: GpuClass, h200: GpuClass, alice: User) -> None:
    fine: dict[str, Any] = {"successor": "", "message": "", "runs_until": None}

    def code(**values: Any) -> str:
        return refused(actions.retire_class, a100.pk, **{**fine, **values})

    assert code(successor=a100.slug) == code(successor="no-such") == "bad_successor"
    GpuClass.objects.filter(pk=h200.pk).update(life_cycle="retiring")
    assert code(successor="h200") == "bad_successor"
    assert code(message="x" * 301) == "bad_message"
    assert code(runs_until=timezone.now()) == "bad_period"
    assert code(by=Actor(alice, via="page")) == "not_allowed"
    GpuClass.objects.filter(pk=a100.pk).update(life_cycle="draft")
    assert code() == "bad_step"
    assert not Event.objects.exists()


def test_a_class_that_would_orphan_grants_is_not_closed_and_the_numbers_are_said(
    a100: GpuClass, team_a: Tenant
) -> None:
    grant = make.grant(team_a, a100, units=2)
    actions.move_class(a100.pk, to="retiring", by=BY)
    with pytest.raises(Refused, match="2 units granted to 1 team until") as found:
        actions.move_class(a100.pk, to="retired", by=BY)
    assert (found.value.code, found.value.refusal.status) == ("orphans_grants", 409)
    grant.delete()
    assert actions.move_class(a100.pk, to="retired", by=BY).life_cycle == "retired"


def test_a_class_on_which_a_run_goes_on_is_not_closed_whatever_its_workload_is_declared_with_by_now(
    a100: GpuClass, h200: GpuClass, namespace_a: Namespace, alice: User
) -> None:
    found = running.workload(namespace_a, a100, by=alice)
    Workload.objects.filter(pk=found.pk).update(gpu_class=h200)
    for one in (a100, h200):
        actions.move_class(one.pk, to="retiring", by=BY)
    assert refused(actions.move_class, a100.pk, to="retired") == "orphans_runs"
    assert actions.move_class(h200.pk, to="retired", by=BY).life_cycle == "retired", "nothing runs on it"
    Run.objects.filter(workload=found).update(ended_at=timezone.now(), outcome="stopped")
    assert actions.move_class(a100.pk, to="retired", by=BY).life_cycle == "retired"


def test_a_class_that_closes_is_not_held_any_more(a100: GpuClass) -> None:
    actions.hold_class(a100.pk, reason="a driver update", until=None, by=BY)
    actions.move_class(a100.pk, to="retiring", by=BY)
    assert actions.move_class(a100.pk, to="retired", by=BY).held_since is None


# ---- proposals -----------------------------------------------------------------------------------------------------


def test_a_dismissed_proposal_is_not_proposed_until_it_is_restored(a100: GpuClass, alice: User) -> None:
    cluster = a100.cluster
    assert queries.open_proposals(cluster) is None, "nobody has seen the nodes"
    mirrored.hardware_seen(cluster)

    def proposed() -> set[str]:
        found = queries.open_proposals(cluster)
        assert found is not None
        return {one.slug for one in found.proposals}

    every = proposed()
    one = min(every)
    assert refused(proposal_actions.dismiss_proposal, one, reason=" ") == "reason_missing"
    proposal_actions.dismiss_proposal(one, reason="kept for the owners of the node", by=BY)
    proposal_actions.dismiss_proposal(one, reason="kept for its owners", by=BY)
    assert proposed() == every - {one}
    told = io.StringIO()
    call_command("catalog", "propose", stdout=told, stderr=io.StringIO())
    assert {line.split()[0] for line in told.getvalue().splitlines()} == every - {one}
    proposal_actions.restore_proposal(one, by=BY)
    assert proposed() == every
    assert refused(proposal_actions.restore_proposal, one) == "not_found"
    for verb, values in ((proposal_actions.dismiss_proposal, {"reason": "x"}), (proposal_actions.restore_proposal, {})):
        assert refused(verb, one, by=Actor(alice, via="page"), **values) == "not_allowed"
    verbs = list(Event.objects.order_by("pk").values_list("verb", flat=True))
    assert verbs == ["proposal.dismissed", "proposal.dismissed", "proposal.restored"]
