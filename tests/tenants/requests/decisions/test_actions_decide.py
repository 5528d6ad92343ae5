"""Deciding a request: one transaction, one winner of a race, and no promise above the limit."""

from __future__ import annotations

import threading
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import IntegrityError, OperationalError, connection
from django.db.backends.postgresql.psycopg_any import DateTimeTZRange
from django.utils import timezone

from accounts.core.actor import Actor
from accounts.models import Delivery, Event, Scope, User
from catalog.models import GpuClass, Pool
from portal.core.errors import Refused, to_refusal
from tenants.core import queries as core_queries
from tenants.grants import queries
from tenants.models import Grant, Namespace, QuotaLine, QuotaRequest, Rule, Tenant
from tenants.requests import actions
from tenants.requests.decisions import actions as decision_actions
from tenants.requests.decisions.types import Decision, OverPromise
from tenants.requests.types import RequestedLine
from tests.support.http.callers import caller, send, told
from tests.support.rows import make
from tests.support.threads import at_once

State = QuotaLine.State


def page(user: User) -> Actor:
    return Actor(user=user, via="page", request_id="request-0001")


def asked(
    gpu_class: GpuClass, units: int, *, days: int = 30, kind: str = "base", starts_in_days: int = 0
) -> RequestedLine:
    start = timezone.now() + timedelta(days=starts_in_days)
    return RequestedLine(
        gpu_class=gpu_class.slug, units=units, starts=start, ends=start + timedelta(days=days), kind=kind
    )


def file(team: Tenant, by: User, *lines: RequestedLine) -> QuotaRequest:
    return actions.file_request(team.slug, lines=lines, justification="Two trainings.", by=page(by))


def approve(request: QuotaRequest, by: User, **values: Any) -> QuotaRequest:
    over_promise = values.pop("over_promise", None)
    decisions = [Decision(line_id=line.pk, approve=True, **values) for line in request.lines.all()]
    return decision_actions.decide_request(request.pk, decisions, by=page(by), over_promise=over_promise)


def in_force(team: Tenant, at: datetime | None = None) -> list[int]:
    return sorted(queries.units_in_force(team.pk, at or core_queries.database_now()).values())


@pytest.fixture
def limited(a100: GpuClass) -> GpuClass:
    """A class with a promise limit of 8 units, whatever capacity the cluster shows."""
    GpuClass.objects.filter(pk=a100.pk).update(promise_limit=8)
    a100.refresh_from_db()
    return a100


def test_an_approved_line_becomes_a_grant_that_is_in_force_at_once(
    team_a: Tenant, namespace_a: Namespace, limited: GpuClass, alice: User, dana: User
) -> None:
    before = namespace_a.generation
    request = file(team_a, alice, asked(limited, 2))
    approve(request, dana)
    line = request.lines.get()
    assert (line.state, line.decided_units, line.decided_by) == (State.APPROVED, 2, dana)
    assert in_force(team_a) == [2]
    namespace_a.refresh_from_db()
    assert namespace_a.generation == before + 1
    assert namespace_a.due_at is not None


def test_a_decision_is_one_event_and_one_mail_each_to_requester_and_managers(
    team_a: Tenant, limited: GpuClass, alice: User, dana: User
) -> None:
    request = file(team_a, alice, asked(limited, 2))
    approve(request, dana, reason="Fine.")
    event = Event.objects.get(verb="request.decided")
    assert event.actor_id == dana.pk
    assert event.tenant == "team-a"
    assert event.after["lines"][0]["units"] == 2
    mail = Delivery.objects.get(event=event)
    assert mail.user == alice
    assert "2 units" in mail.body
    assert "Fine." in mail.body


def test_facts_as_shown_are_kept_with_the_line(team_a: Tenant, limited: GpuClass, alice: User, dana: User) -> None:
    request = file(team_a, alice, asked(limited, 2))
    approve(request, dana)
    facts = request.lines.get().facts
    assert (facts["held"], facts["promised"], facts["limit"], facts["allocatable"]) == (0, 0, 8, None)


def test_a_new_total_ends_the_running_grant_and_leaves_no_gap(
    team_a: Tenant, limited: GpuClass, alice: User, dana: User
) -> None:
    old = make.grant(team_a, limited, units=4)
    approve(file(team_a, alice, asked(limited, 6)), dana)
    old.refresh_from_db()
    new = Grant.objects.exclude(pk=old.pk).get()
    assert old.period.upper == new.period.lower
    assert old.units == 4
    assert in_force(team_a) == [6]


def test_a_new_total_of_nothing_is_the_end_and_no_grant(
    team_a: Tenant, limited: GpuClass, alice: User, dana: User
) -> None:
    Rule.objects.update_or_create(name="decrease", defaults={"is_on": False})
    make.grant(team_a, limited, units=4)
    approve(file(team_a, alice, asked(limited, 0)), dana)
    assert in_force(team_a) == []
    assert Grant.objects.count() == 1


def test_a_boost_adds_to_the_total_and_ends_by_itself(
    team_a: Tenant, limited: GpuClass, alice: User, dana: User
) -> None:
    make.grant(team_a, limited, units=4)
    approve(file(team_a, alice, asked(limited, 2, days=7, kind="boost")), dana)
    assert in_force(team_a) == [6]
    assert in_force(team_a, timezone.now() + timedelta(days=8)) == [4]


def test_a_total_granted_for_later_is_not_overwritten(
    team_a: Tenant, limited: GpuClass, alice: User, dana: User
) -> None:
    make.grant(team_a, limited, units=4, since=timezone.now() + timedelta(days=10))
    request = file(team_a, alice, asked(limited, 4, days=30))
    with pytest.raises(Refused, match="A total of 4 is already granted from") as refused:
        approve(request, dana)
    assert refused.value.code == "grant_overlaps"
    assert request.lines.get().state == State.PENDING


def test_fewer_units_than_asked_need_a_reason(team_a: Tenant, limited: GpuClass, alice: User, dana: User) -> None:
    request = file(team_a, alice, asked(limited, 4))
    with pytest.raises(Refused) as refused:
        approve(request, dana, units=2)
    assert (refused.value.code, refused.value.refusal.field) == ("reason_missing", "lines[0].reason")
    approve(request, dana, units=2, reason="Start with two.")
    line = request.lines.get()
    assert (line.asked_units, line.decided_units, line.reason) == (4, 2, "Start with two.")


def test_promising_more_than_the_class_can_give_needs_the_tick_and_a_reason(
    team_a: Tenant, limited: GpuClass, alice: User, dana: User
) -> None:
    other = make.tenant(limited.cluster, slug="team-b", namespace=f"{team_a.namespaces.get().name}-b")
    make.grant(other, limited, units=6)
    request = file(team_a, alice, asked(limited, 4))
    with pytest.raises(Refused, match=r"exceeds the allocation limit of .* \(8\) by 2") as refused:
        approve(request, dana)
    assert refused.value.code == "over_promised"
    with pytest.raises(Refused) as without_reason:
        approve(request, dana, over_promise=OverPromise(is_ticked=True))
    assert without_reason.value.code == "reason_missing"
    approve(request, dana, over_promise=OverPromise(is_ticked=True, reason="Team B ends on Friday."))
    assert request.lines.get().facts["over_promise"] == "Team B ends on Friday."
    assert Event.objects.get(verb="request.decided").after["over_promised"][0]["units"] == 2


def test_taking_away_from_a_class_that_is_over_its_limit_needs_no_tick(
    team_a: Tenant, limited: GpuClass, alice: User, dana: User
) -> None:
    Rule.objects.update_or_create(name="decrease", defaults={"is_on": False})
    make.grant(team_a, limited, units=12)
    approve(file(team_a, alice, asked(limited, 10, days=20)), dana)
    assert in_force(team_a) == [10]


def test_while_capacity_is_unknown_every_growth_is_a_promise_in_the_dark(
    team_a: Tenant, a100: GpuClass, alice: User, dana: User
) -> None:
    request = file(team_a, alice, asked(a100, 1))
    with pytest.raises(Refused, match="no current cluster data and no allocation limit"):
        approve(request, dana)


@pytest.mark.parametrize("is_approved", [True, False])
@pytest.mark.parametrize("hours", [-1, 24 * 365])
def test_a_grace_out_of_bounds_is_refused_for_a_denial_too(
    team_a: Tenant, limited: GpuClass, alice: User, dana: User, is_approved: bool, hours: int
) -> None:
    request = file(team_a, alice, asked(limited, 2))
    line = {"id": request.lines.get().pk, "approve": is_approved, "reason": "No cards.", "grace_hours": hours}
    answer = send(caller(dana, Scope.DECIDE), "POST", f"/api/v1/requests/{request.pk}/decide", {"lines": [line]})
    assert told(answer) == (422, "bad_grace", "lines[0].grace_hours")
    assert request.lines.get().state == "pending"


def test_denying_needs_a_reason_and_grants_nothing(team_a: Tenant, limited: GpuClass, alice: User, dana: User) -> None:
    request = file(team_a, alice, asked(limited, 2))
    line = request.lines.get()
    with pytest.raises(Refused, match="Enter a comment of 1 to 500 characters"):
        decision_actions.decide_request(request.pk, [Decision(line.pk, approve=False)], by=page(dana))
    decision_actions.decide_request(
        request.pk, [Decision(line.pk, approve=False, reason="Use a slice.")], by=page(dana)
    )
    line.refresh_from_db()
    assert (line.state, line.reason) == (State.DENIED, "Use a slice.")
    assert not Grant.objects.exists()


@pytest.mark.parametrize("life_cycle", ["retiring", "retired"])
def test_a_class_that_was_retired_since_the_request_is_not_given_out(
    team_a: Tenant, limited: GpuClass, alice: User, dana: User, life_cycle: str
) -> None:
    make.grant(team_a, limited, units=2)
    request = file(team_a, alice, asked(limited, 4))
    GpuClass.objects.filter(pk=limited.pk).update(life_cycle=life_cycle)
    with pytest.raises(Refused, match="the team has 2 and cannot get more") as refused:
        approve(request, dana)
    assert (refused.value.code, refused.value.refusal.field) == ("class_retiring", "lines[0].units")
    assert in_force(team_a) == [2]
    approve(request, dana, units=1, reason="One until it is gone.")
    assert in_force(team_a) == [1]


def test_a_closed_team_gets_nothing_but_its_answer(
    team_a: Tenant, namespace_a: Namespace, limited: GpuClass, alice: User, dana: User
) -> None:
    request = file(team_a, alice, asked(limited, 2))
    make.close(namespace_a.name)
    with pytest.raises(Refused) as refused:
        approve(request, dana)
    assert refused.value.code == "closed"
    line = request.lines.get()
    decision_actions.decide_request(
        request.pk, [Decision(line.pk, approve=False, reason="The team closes.")], by=page(dana)
    )
    assert request.lines.get().state == State.DENIED


def test_all_lines_that_are_named_are_decided_or_none(
    team_a: Tenant, limited: GpuClass, alice: User, dana: User
) -> None:
    mig = make.gpu_class(limited.cluster, slug="mig", resource="nvidia.com/mig-1g.10gb", promise_limit=7)
    request = file(team_a, alice, asked(limited, 2), asked(mig, 20))
    with pytest.raises(Refused):
        approve(request, dana)
    assert {line.state for line in request.lines.all()} == {State.PENDING}
    assert not Grant.objects.exists()


def test_lines_of_one_request_may_be_decided_apart(team_a: Tenant, limited: GpuClass, alice: User, dana: User) -> None:
    mig = make.gpu_class(limited.cluster, slug="mig", resource="nvidia.com/mig-1g.10gb", promise_limit=7)
    request = file(team_a, alice, asked(limited, 2), asked(mig, 3))
    first, second = request.lines.order_by("pk")
    decision_actions.decide_request(request.pk, [Decision(second.pk, approve=True)], by=page(dana))
    assert [line.state for line in request.lines.order_by("pk")] == [State.PENDING, State.APPROVED]
    decision_actions.decide_request(request.pk, [Decision(first.pk, approve=False, reason="Not now.")], by=page(dana))
    assert in_force(team_a) == [3]


# ---- concurrent decisions ----------------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_of_two_approvers_who_decide_at_once_one_wins(team_a: Tenant, limited: GpuClass, alice: User) -> None:
    approvers = [make.approver(name) for name in ("Dana", "Dora", "Dirk", "Doro")]
    request = file(team_a, alice, asked(limited, 2))
    results = at_once(*(lambda who=who: approve(request, who) for who in approvers))
    assert sorted(results) == ["already_decided", "already_decided", "already_decided", "ok"]
    assert in_force(team_a) == [2]
    assert Event.objects.filter(verb="request.decided").count() == 1


@pytest.mark.django_db(transaction=True)
def test_the_last_units_are_promised_once(team_a: Tenant, limited: GpuClass, alice: User, dana: User) -> None:
    teams = [team_a]
    for number in range(3):
        other = make.tenant(limited.cluster, slug=f"team-{number}", namespace=f"{number}-of-{limited.slug}")
        make.member(other, alice, make.Membership.Role.OWNER)
        teams.append(other)
    filed = [file(team, alice, asked(limited, 5)) for team in teams]
    results = at_once(*(lambda request=request: approve(request, dana) for request in filed))
    assert sorted(results) == ["ok", "over_promised", "over_promised", "over_promised"]
    assert sum(queries.promised_units(limited.cluster, core_queries.database_now()).values()) == 5


@pytest.mark.django_db(transaction=True)
def test_of_decide_and_withdraw_one_wins(team_a: Tenant, limited: GpuClass, alice: User, dana: User) -> None:
    request = file(team_a, alice, asked(limited, 2))
    results = at_once(lambda: approve(request, dana), lambda: actions.withdraw_request(request.pk, by=page(alice)))
    assert sorted(results) == ["already_decided", "ok"]
    granted = results[0] == "ok"
    assert request.lines.get().state == (State.APPROVED if granted else State.WITHDRAWN)
    assert in_force(team_a) == ([2] if granted else [])


@pytest.mark.django_db(transaction=True)
def test_somebody_who_holds_the_class_for_long_makes_others_busy_not_stuck(
    team_a: Tenant, limited: GpuClass, alice: User, dana: User
) -> None:
    request = file(team_a, alice, asked(limited, 2))
    locked, release = threading.Event(), threading.Event()

    def hold() -> None:
        try:
            with connection.cursor() as cursor:
                cursor.execute("BEGIN")
                cursor.execute("SELECT 1 FROM catalog_gpuclass WHERE id = %s FOR UPDATE", [limited.pk])
                locked.set()
                release.wait(timeout=20)
                cursor.execute("ROLLBACK")
        finally:
            connection.close()

    holder = threading.Thread(target=hold)
    holder.start()
    assert locked.wait(timeout=10)
    started = timezone.now()
    try:
        with pytest.raises(OperationalError) as raised:
            approve(request, dana)
    finally:
        release.set()
        holder.join(timeout=10)
    refusal = to_refusal(raised.value)
    assert refusal is not None
    assert (refusal.code, refusal.status) == ("busy", 409)
    assert timezone.now() - started < timedelta(seconds=15), "the holder would have let go after 20"
    assert request.lines.get().state == State.PENDING


def test_a_grant_has_no_other_door_to_two_totals_at_a_time(team_a: Tenant, limited: GpuClass) -> None:
    """The database refuses it too, also for a client such as psql."""
    make.grant(team_a, limited, units=4)
    with pytest.raises(IntegrityError, match="one_base_grant_at_a_time"):
        make.grant(team_a, limited, units=2)


def test_the_pool_is_looked_at_after_a_decision(team_a: Tenant, limited: GpuClass, alice: User, dana: User) -> None:
    pool = Pool.objects.create(cluster=limited.cluster, due_at=None)
    approve(file(team_a, alice, asked(limited, 2)), dana)
    pool.refresh_from_db()
    assert pool.due_at is not None
    assert pool.generation == 1


def test_periods_are_half_open(team_a: Tenant, limited: GpuClass) -> None:
    start = timezone.now()
    Grant.objects.create(
        tenant=team_a, gpu_class=limited, units=1, period=DateTimeTZRange(start, start + timedelta(hours=1))
    )
    assert queries.units_in_force(team_a.pk, start) == {limited.pk: 1}
    assert queries.units_in_force(team_a.pk, start + timedelta(hours=1)) == {}


def test_a_decision_asks_no_more_of_the_database_than_it_has_to(
    team_a: Tenant, limited: GpuClass, alice: User, dana: User, django_assert_num_queries: Any
) -> None:
    request = file(team_a, alice, asked(limited, 2))
    line = request.lines.get()
    # Queries: the test's savepoint and its release; the request, a lock timeout; classes, namespace, lines with locks;
    # the clock, role and rights; promises to all and to the team, four about the cluster; the line and its grant;
    # the namespace touched, pool and plans made due; the event, managers; preferences, outdated notices,
    # notices; how many emails the actor caused, emails.
    with django_assert_num_queries(26):
        decision_actions.decide_request(request.pk, [Decision(line.pk, approve=True)], by=page(dana))
