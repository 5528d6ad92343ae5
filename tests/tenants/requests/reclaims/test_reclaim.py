"""Staff take units back with notice: who may, what is refused, what an approval does to grants, and who is notified."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone

from accounts.core.actor import Actor
from accounts.models import Delivery, Event, Role, User
from catalog.models import GpuClass
from portal.core.errors import Refused
from tenants.grants import queries as grant_queries
from tenants.members.policy import Standing
from tenants.models import ClassAccess, Grant, Membership, QuotaLine, QuotaRequest, Rule, Tenant
from tenants.requests import actions as request_actions
from tenants.requests.comments import actions as comment_actions
from tenants.requests.decisions import actions
from tenants.requests.decisions.types import Decision
from tenants.requests.reclaims import actions as reclaim_actions
from tenants.requests.reclaims import policy as reclaim_policy
from tenants.requests.reclaims.policy import ReclaimableTotal, ReclaimDecision
from tenants.requests.types import ReclaimLine, RequestedLine
from tests.support.rows import make

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
DAY = timedelta(days=1)
WHY = "The course needs them."


def page(user: User) -> Actor:
    return Actor(user=user, via="page")


def days(count: float) -> datetime:
    return timezone.now() + timedelta(days=count)


@pytest.fixture
def granted(team_a: Tenant, a100: GpuClass) -> Grant:
    """A grant of 8 units for 30 days, with a grace of two days."""
    GpuClass.objects.update(promise_limit=8)
    found = make.grant(team_a, a100, units=8)
    Grant.objects.filter(pk=found.pk).update(grace=2 * DAY)
    return found


def taken(by: User, units: int = 3, *, starts: datetime | None = None, slug: str = "") -> QuotaRequest:
    line = ReclaimLine(slug or GpuClass.objects.earliest("pk").slug, units, starts or days(9))
    return reclaim_actions.file_reclaim("team-a", lines=[line], justification=WHY, by=page(by))


def code(by: User, **typed: object) -> str:
    with pytest.raises(Refused) as refused:
        taken(by, **typed)  # type: ignore[arg-type]
    assert not QuotaRequest.objects.exists()
    return refused.value.code


def answered(filed: QuotaRequest, by: User, **answer: object) -> QuotaLine:
    line = filed.lines.get()
    actions.decide_request(filed.pk, [Decision(line.pk, approve=True, **answer)], by=page(by))  # type: ignore[arg-type]
    line.refresh_from_db()
    return line


# ---- rules --------------------------------------------------------------------------------------------------------

HELD = ReclaimableTotal(1, "a100", "A100", "Team A", 8, NOW + 30 * DAY, is_pending=False)


@pytest.mark.parametrize(
    ("units", "after", "held", "expected"),
    [
        (3, 8, HELD, ""),
        (0, 7, HELD, ""),
        (3, 6.99, HELD, "notice_too_short starts_at"),
        (3, -1, HELD, "notice_too_short starts_at"),
        (8, 8, HELD, "not_lower units"),
        (9, 8, HELD, "more_than_held units"),
        (-1, 8, HELD, "bad_units units"),
        (3, 8, ReclaimableTotal(1, "a100", "A100", "Team A", 0, NOW, is_pending=False), "nothing_held gpu_class"),
        (3, 8, ReclaimableTotal(1, "a100", "A100", "Team A", 8, NOW, is_pending=True), "already_pending gpu_class"),
        (3, 8, None, "unknown_class gpu_class"),
    ],
)
def test_what_may_be_taken_back(units: int, after: float, held: ReclaimableTotal | None, expected: str) -> None:
    found = reclaim_policy.reclaim_line_refusal(ReclaimLine("a100", units, NOW + timedelta(days=after)), held, now=NOW)
    assert (f"{found.code} {found.field}" if found else "") == expected


@pytest.mark.parametrize(
    ("units", "starts", "ends", "held", "expected"),
    [
        (3, 8, 30, 8, ""),
        (5, 10, 30, 8, ""),  # less is taken, and later
        (2, 8, 30, 8, "more_than_told units"),
        (3, 7.9, 30, 8, "notice_too_short starts_at"),
        (3, 8, 29, 8, "bad_period ends_at"),
        (3, 8, 30, 3, "not_lower units"),
        (3, 8, 30, 2, "more_than_held units"),
        (3, 8, 30, 0, "nothing_held gpu_class"),
    ],
)
def test_a_decision_is_never_worse_than_what_the_team_was_told(
    units: int, starts: float, ends: float, held: int, expected: str
) -> None:
    period = (NOW + timedelta(days=starts), NOW + timedelta(days=ends))
    answer = ReclaimDecision(
        units, *period, asked_units=3, asked_from=NOW + 8 * DAY, asked_until=NOW + 30 * DAY, held=held
    )
    found = reclaim_policy.reclaim_decision_refusal(answer, "A100")
    assert (f"{found.code} {found.field}" if found else "") == expected


@pytest.mark.parametrize(
    ("roles", "role", "wanted", "expected"),
    [
        ([Role.OPERATOR], "", "active", ""),
        ([Role.ADMIN], "", "active", ""),
        ([Role.APPROVER], "", "active", ""),
        ([Role.AUDITOR], "", "active", "not_allowed"),
        ([], "owner", "active", "not_allowed"),
        ([Role.OPERATOR], "member", "active", "own_team"),
        ([Role.APPROVER], "viewer", "active", "own_team"),
        ([Role.OPERATOR], "", "suspended", ""),
        ([Role.OPERATOR], "", "closed", "closed"),
    ],
)
def test_who_may_take_back(roles: list[Role], role: str, wanted: str, expected: str) -> None:
    who = User(pk=1, email="x@example.org", name="X", roles=[str(one) for one in roles], is_active=True)
    found = reclaim_policy.may_reclaim(Actor(user=who, via="page"), Standing(role, wanted))
    assert (found.code if found else "") == expected


# ---- proposing a reduction -----------------------------------------------------------------------------------------


def test_it_waits_for_another_approver_and_the_team_hears_of_it(
    granted: Grant, team_a: Tenant, a100: GpuClass, alice: User, bob: User, dana: User, olga: User
) -> None:
    make.member(team_a, make.user("Mona"), Membership.Role.MANAGER)
    filed = taken(olga, 3)
    line = filed.lines.get()
    assert (line.kind, line.asked_units, line.state) == ("reclaim", 3, "pending")
    assert line.asked_until == granted.period.upper
    assert [grant.period for grant in Grant.objects.all()] == [granted.period], "nothing happens before a yes"
    assert Event.objects.get(verb="request.reclaimed").actor == "Olga"
    told = {one.user.name: f"{one.subject} {one.body}" for one in Delivery.objects.select_related("user") if one.user}
    assert set(told) == {"Alice", "Mona", "Dana"}
    assert f"{a100.name}: reduction from 8 to 3 units on {line.asked_from:%d %b %Y}" in told["Alice"]
    assert "in 8 days" in told["Alice"] or "in 9 days" in told["Alice"]
    assert WHY in told["Alice"]
    assert "Decision needed" in told["Dana"]


def test_who_proposes_it_does_not_decide_it(granted: Grant, dana: User) -> None:
    filed = taken(dana)
    with pytest.raises(Refused) as refused:
        answered(filed, dana)
    assert refused.value.code == "own_request"
    assert answered(filed, make.approver("Dora")).state == "approved"


def test_it_is_refused_to_everybody_else(
    granted: Grant, team_a: Tenant, alice: User, charlie: User, dana: User, olga: User
) -> None:
    elsewhere = make.gpu_class(team_a.namespaces.get().cluster, slug="mig", resource="nvidia.com/mig-1g.10gb")
    assert code(alice) == "not_allowed"
    assert code(charlie) == "not_found"
    assert code(make.user("Audra", roles=[Role.AUDITOR])) == "not_allowed"
    assert code(make.approver("Dora", gpu_class=elsewhere), slug=granted.gpu_class.slug) == "not_your_class"
    make.member(team_a, olga)
    assert code(olga) == "own_team"
    assert not Event.objects.exists()


def test_what_is_wrong_is_said_beside_its_field(granted: Grant, team_a: Tenant, olga: User) -> None:
    slug = granted.gpu_class.slug
    with pytest.raises(Refused, match="at least 7 days' notice") as short:
        taken(olga, starts=days(6))
    assert short.value.refusal.field == "lines[0].starts_at"
    with pytest.raises(Refused, match=r"Team A has 8 of .* already on") as same:
        taken(olga, 8)
    assert same.value.refusal.field == "lines[0].units"
    assert code(olga, starts=days(31)) == "nothing_held", "the grant is over by then"
    assert code(olga, slug="nothing") == "unknown_class"
    request_actions.file_request(
        "team-a",
        lines=[RequestedLine(slug, 9, days(0), days(9))],
        justification="x",
        by=page(User.objects.get(name="Alice")),
    )
    with pytest.raises(Refused) as pending:
        taken(olga)
    assert pending.value.code == "already_pending"


def test_a_boost_is_nothing_to_take_back(team_a: Tenant, a100: GpuClass, olga: User) -> None:
    make.grant(team_a, a100, units=2, kind=Grant.Kind.BOOST)
    assert code(olga, units=0) == "nothing_held"


def test_units_of_a_class_that_the_team_may_use_no_more_are_taken_back_too(granted: Grant, olga: User) -> None:
    GpuClass.objects.update(visibility=GpuClass.Visibility.NAMED)
    assert not ClassAccess.objects.exists()
    assert taken(olga, 0).lines.get().state == "pending"


# ---- deciding about a reduction ------------------------------------------------------------------------------------


def test_a_yes_cuts_the_total_from_that_day_on_and_leaves_boosts(
    granted: Grant, team_a: Tenant, a100: GpuClass, dana: User, olga: User
) -> None:
    boost = make.grant(team_a, a100, units=2, kind=Grant.Kind.BOOST)
    start = days(9)
    answered(taken(olga, 3, starts=start), dana)
    cut, rest = Grant.objects.filter(kind="base").order_by("period")
    assert (cut.pk, cut.units, cut.period.lower, cut.period.upper) == (granted.pk, 8, granted.period.lower, start)
    assert (rest.units, rest.period.lower, rest.period.upper) == (3, start, granted.period.upper)
    assert (cut.grace, rest.grace) == (2 * DAY, 2 * DAY), "what is left ends as it would have"
    after = Grant.objects.get(pk=boost.pk)
    assert (after.units, after.period) == (boost.units, boost.period)
    mail = Delivery.objects.filter(subject__endswith="decision", user__name="Alice").get().body
    assert f"reduced to 3 units from {start:%d %b %Y, %H:%M}" in mail


def test_all_of_it_ends_the_grant_and_makes_none(granted: Grant, dana: User, olga: User) -> None:
    start = days(9)
    line = answered(taken(olga, 0, starts=start), dana)
    assert (line.decided_units, line.decided_grace) == (0, None)
    [cut] = Grant.objects.all()
    assert cut.period.upper == start


def test_the_approver_may_take_less_and_later_but_no_more_and_no_sooner(granted: Grant, dana: User, olga: User) -> None:
    filed, start = taken(olga, 3, starts=days(9)), days(12)
    for answer, expected in (
        ({"units": 2}, "more_than_told"),
        ({"starts": days(8)}, "notice_too_short"),
        ({"ends": days(20)}, "bad_period"),
        ({"units": 8}, "not_lower"),
    ):
        with pytest.raises(Refused) as refused:
            answered(filed, dana, **answer)
        assert refused.value.code == expected
    assert Grant.objects.count() == 1
    answered(filed, dana, units=5, starts=start)
    assert [(one.units, one.period.lower) for one in Grant.objects.order_by("period")][1:] == [(5, start)]


def test_a_late_yes_takes_back_from_then_on(granted: Grant, dana: User, olga: User) -> None:
    filed = taken(olga, 3)
    asked_from = days(-2)
    filed.lines.update(asked_from=asked_from)
    line = answered(filed, dana)
    assert line.decided_from is not None
    assert line.decided_from > asked_from
    assert Grant.objects.get(pk=granted.pk).period.upper == line.decided_from
    held = grant_queries.granted_units(granted.tenant_id, timezone.now())
    assert held.in_force == {granted.gpu_class_id: 3}
    assert held.keepable == {granted.gpu_class_id: 8}, "Running workloads continue for the grace period"


def test_a_class_that_goes_is_no_reason_against_it(granted: Grant, dana: User, olga: User) -> None:
    Grant.objects.filter(pk=granted.pk).update(
        period=(days(5), days(30))  # nothing is in force today
    )
    filed = taken(olga, 3)
    GpuClass.objects.update(life_cycle=GpuClass.LifeCycle.RETIRING)
    assert answered(filed, dana).state == "approved"


def test_it_is_never_decided_by_a_rule(granted: Grant, olga: User) -> None:
    Rule.objects.update_or_create(name="decrease", defaults={"is_on": True})
    assert taken(olga, 0).lines.get().state == "pending"


# ---- a pending reduction -------------------------------------------------------------------------------------------


def test_the_team_comments_but_only_who_proposed_it_takes_it_back(
    granted: Grant, team_a: Tenant, alice: User, bob: User, dana: User, olga: User
) -> None:
    filed = taken(olga)
    comment_actions.comment_request(filed.pk, text="We need four.", by=page(bob))
    comment_actions.comment_request(filed.pk, text="Until May?", by=page(olga))
    for person in (alice, bob, dana):
        with pytest.raises(Refused, match="who proposed this reduction can withdraw it") as refused:
            request_actions.withdraw_request(filed.pk, by=page(person))
        assert refused.value.refusal.status == 403
    told = Delivery.objects.filter(user=alice).count()
    request_actions.withdraw_request(filed.pk, by=page(olga))
    assert filed.lines.get().state == "withdrawn"
    assert Delivery.objects.filter(user=alice).count() == told + 1


def test_while_it_waits_the_team_is_told_why_it_cannot_ask(granted: Grant, alice: User, olga: User) -> None:
    taken(olga)
    asked = RequestedLine(granted.gpu_class.slug, 9, days(0), days(9))
    with pytest.raises(Refused, match="is pending and is decided first"):
        request_actions.file_request("team-a", lines=[asked], justification="x", by=page(alice))
