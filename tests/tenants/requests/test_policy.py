"""Who may do what: one table per verb, with every role and every reason for a refusal."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from accounts.core.actor import Actor, system_actor
from accounts.models import Role, Scope, User
from portal.core.errors import Refusal
from tenants.core import policy as core_policy
from tenants.grants.types import ClassFacts, Overcommit
from tenants.members import policy as member_policy
from tenants.members.policy import Standing
from tenants.onboarding.teams import policy as team_policy
from tenants.requests import policy
from tenants.requests.decisions import policy as decision_policy
from tenants.requests.decisions.types import DecidableLine
from tenants.requests.types import RequestedLine

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
FACTS = ClassFacts(slug="a100", name="A100", life_cycle="active", held=2)
LINE = DecidableLine(gpu_class="a100", class_name="A100", state="pending", filed_by=1, role="", decides=None)


def person(pk: int = 2, *roles: Role, scopes: frozenset[str] | None = None) -> Actor:
    user = User(pk=pk, name="Somebody", roles=[str(role) for role in roles])
    return Actor(user=user, via="page", **({} if scopes is None else {"scopes": scopes}))


def code(refusal: Refusal | None) -> str:
    return refusal.code if refusal else "yes"


@pytest.mark.parametrize(
    ("role", "wanted", "answer"),
    [
        ("owner", "active", "yes"),
        ("manager", "active", "yes"),
        ("member", "active", "not_allowed"),
        ("viewer", "active", "not_allowed"),
        ("", "active", "not_allowed"),
        ("owner", "suspended", "yes"),
        ("owner", "closed", "closed"),
    ],
)
def test_owners_and_managers_ask_for_quota(role: str, wanted: str, answer: str) -> None:
    assert code(policy.may_file(person(), Standing(role, wanted))) == answer


def test_a_token_asks_only_with_its_scope() -> None:
    reader = person(scopes=frozenset({Scope.READ}))
    assert code(policy.may_file(reader, Standing("owner"))) == "missing_scope"
    assert (
        code(decision_policy.may_decide(person(2, Role.APPROVER, scopes=frozenset({Scope.READ})), LINE))
        == "missing_scope"
    )


def asked(**changes: object) -> RequestedLine:
    values: dict[str, object] = {"gpu_class": "a100", "units": 4, "starts": NOW, "ends": NOW + timedelta(days=30)}
    return RequestedLine(**{**values, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("line", "facts", "answer"),
    [
        pytest.param(asked(), FACTS, "yes", id="a new total"),
        pytest.param(asked(), None, "unknown_class", id="no such class"),
        pytest.param(asked(units=0), FACTS, "yes", id="release"),
        pytest.param(asked(units=0), ClassFacts("a100", "A100", "active"), "nothing_to_release", id="has no quota"),
        pytest.param(asked(units=-1), FACTS, "bad_units", id="negative"),
        pytest.param(asked(units=0, kind="boost"), FACTS, "bad_units", id="empty boost"),
        pytest.param(asked(kind="gift"), FACTS, "bad_kind", id="no such kind"),
        pytest.param(asked(ends=NOW), FACTS, "bad_period", id="ends as it starts"),
        pytest.param(
            asked(starts=NOW - timedelta(days=9), ends=NOW - timedelta(days=1)), FACTS, "bad_period", id="past"
        ),
        pytest.param(asked(ends=NOW + timedelta(days=2000)), FACTS, "bad_period", id="for ever"),
        pytest.param(asked(), ClassFacts("a100", "A100", "draft"), "class_closed", id="draft"),
        pytest.param(asked(), ClassFacts("a100", "A100", "retired"), "class_closed", id="retired"),
        pytest.param(
            asked(units=4), ClassFacts("a100", "A100", "retiring", 2), "class_retiring", id="more of retiring"
        ),
        pytest.param(asked(units=1), ClassFacts("a100", "A100", "retiring", 2), "yes", id="less of retiring"),
        pytest.param(asked(), ClassFacts("a100", "A100", "active", 2, True), "already_pending", id="asked already"),
    ],
)
def test_a_line_is_possible_or_says_why_not(line: RequestedLine, facts: ClassFacts | None, answer: str) -> None:
    assert code(policy.line_refusal(line, facts, now=NOW)) == answer


@pytest.mark.parametrize(
    ("life_cycle", "kind", "units", "answer"),
    [
        ("active", "base", 9, "yes"),
        ("active", "boost", 9, "yes"),
        ("retiring", "base", 2, "yes"),
        ("retiring", "base", 3, "class_retiring"),
        ("retiring", "boost", 1, "class_retiring"),
        ("retired", "base", 0, "yes"),
        ("retired", "base", 3, "class_retiring"),
        ("retired", "boost", 0, "yes"),
    ],
)
def test_of_a_class_that_goes_nobody_gets_more(life_cycle: str, kind: str, units: int, answer: str) -> None:
    found = policy.growth_refusal(ClassFacts("a100", "A100", life_cycle, held=2), kind=kind, units=units)
    assert code(found) == answer
    assert found is None or (found.status, found.field) == (409, "units")


@pytest.mark.parametrize(("wanted", "answer"), [("active", "yes"), ("suspended", "yes"), ("closed", "closed")])
def test_nothing_is_granted_to_a_team_that_is_being_closed(wanted: str, answer: str) -> None:
    assert code(decision_policy.may_grant(Standing("", wanted))) == answer


@pytest.mark.parametrize(
    ("lines", "why", "answer"),
    [
        ([asked()], "Training.", "yes"),
        ([], "Training.", "bad_lines"),
        ([asked(), asked(units=2)], "Training.", "bad_lines"),
        ([asked(gpu_class=f"c{n}") for n in range(21)], "Training.", "bad_lines"),
        ([asked()], "   ", "bad_justification"),
        ([asked()], "x" * 2001, "bad_justification"),
    ],
)
def test_a_request_has_lines_and_a_reason(lines: list[RequestedLine], why: str, answer: str) -> None:
    assert code(policy.request_refusal(lines, why)) == answer


@pytest.mark.parametrize(
    ("by", "line", "answer"),
    [
        pytest.param(person(2, Role.APPROVER), LINE, "yes", id="approver of all"),
        pytest.param(person(2), LINE, "not_allowed", id="nobody special"),
        pytest.param(person(2, Role.OPERATOR, Role.ADMIN), LINE, "not_allowed", id="operator and admin"),
        pytest.param(person(1, Role.APPROVER), LINE, "own_request", id="the requester"),
        pytest.param(
            person(2, Role.APPROVER),
            DecidableLine("a100", "A100", "pending", 1, "viewer", None),
            "own_team",
            id="a member",
        ),
        pytest.param(
            person(2, Role.APPROVER),
            DecidableLine("a100", "A100", "pending", 1, "", {"a100"}),
            "yes",
            id="of this class",
        ),
        pytest.param(
            person(2, Role.APPROVER),
            DecidableLine("a100", "A100", "pending", 1, "", {"h100"}),
            "not_your_class",
            id="of another class",
        ),
        pytest.param(
            person(2, Role.APPROVER),
            DecidableLine("a100", "A100", "denied", 1, "", None),
            "already_decided",
            id="decided before",
        ),
        pytest.param(system_actor("demo"), LINE, "not_allowed", id="the portal itself"),
    ],
)
def test_approvers_decide_never_about_their_own(by: Actor, line: DecidableLine, answer: str) -> None:
    assert code(decision_policy.may_decide(by, line)) == answer


@pytest.mark.parametrize(
    ("units", "days", "is_less", "reason", "answer"),
    [
        (4, 30, False, "", "yes"),
        (0, 30, True, "Give it back.", "yes"),
        (2, 30, True, "", "reason_missing"),
        (-1, 30, False, "", "bad_units"),
        (4, 0, False, "", "bad_period"),
        (4, 5000, False, "", "bad_period"),
    ],
)
def test_what_is_approved_makes_sense(units: int, days: int, is_less: bool, reason: str, answer: str) -> None:
    end = NOW + timedelta(days=days)
    found = decision_policy.may_approve(units=units, starts=NOW, ends=end, now=NOW, is_less=is_less, reason=reason)
    assert code(found) == answer


TOO_MANY = Overcommit("A100", 3, 8)


@pytest.mark.parametrize(
    ("excesses", "ticked", "reason", "answer"),
    [
        ([], False, "", "yes"),
        ([TOO_MANY], False, "", "over_promised"),
        ([TOO_MANY], False, "Because.", "over_promised"),
        ([TOO_MANY], True, " ", "reason_missing"),
        ([TOO_MANY], True, "Because.", "yes"),
        ([Overcommit("A100", 3, None)], False, "", "over_promised"),
    ],
)
def test_over_promising_is_ticked_and_explained(
    excesses: list[Overcommit], ticked: bool, reason: str, answer: str
) -> None:
    assert code(decision_policy.may_over_promise(excesses, is_ticked=ticked, reason=reason)) == answer


@pytest.mark.parametrize(
    ("by", "role", "answer"),
    [
        (person(1), "", "yes"),
        (person(2), "owner", "yes"),
        (person(2), "manager", "yes"),
        (person(2), "member", "not_allowed"),
        (person(2, Role.APPROVER), "", "not_allowed"),
    ],
)
def test_a_request_is_taken_back_by_its_side(by: Actor, role: str, answer: str) -> None:
    assert code(policy.may_withdraw(by, Standing(role), filed_by=1)) == answer


@pytest.mark.parametrize(
    ("by", "standing", "role", "is_self", "owners", "answer"),
    [
        pytest.param(person(), "owner", "member", False, 1, "yes", id="owner removes member"),
        pytest.param(person(), "manager", "member", False, 1, "yes", id="manager removes member"),
        pytest.param(person(), "manager", "owner", False, 2, "not_allowed", id="manager removes owner"),
        pytest.param(person(), "member", "member", False, 1, "not_allowed", id="member removes member"),
        pytest.param(person(), "member", "owner", False, 1, "not_allowed", id="member removes the last owner"),
        pytest.param(person(), "manager", "owner", False, 1, "not_allowed", id="manager removes the last owner"),
        pytest.param(person(), "member", "member", True, 1, "yes", id="member leaves"),
        pytest.param(person(), "owner", "owner", True, 2, "yes", id="one of two owners leaves"),
        pytest.param(person(), "owner", "owner", True, 1, "last_owner", id="the last owner leaves"),
        pytest.param(person(2, Role.ADMIN), "", "owner", False, 1, "last_owner", id="admin removes the last owner"),
        pytest.param(person(2, Role.ADMIN), "", "owner", False, 2, "yes", id="admin removes an owner"),
    ],
)
def test_members_come_and_go(by: Actor, standing: str, role: str, is_self: bool, owners: int, answer: str) -> None:
    found = member_policy.may_remove_member(by, Standing(standing), role=role, is_self=is_self, owners=owners)
    assert code(found) == answer


@pytest.mark.parametrize(
    ("slug", "answer"),
    [
        ("team-a", "yes"),
        ("a", "yes"),
        ("kube-system", "reserved"),
        ("default", "reserved"),
        ("gpu-portal", "reserved"),
        ("gpu-portal-plan", "reserved"),
        ("kueue-system", "reserved"),
        ("My Lab", "bad_name"),
        ("-a", "bad_name"),
        ("a--b", "bad_name"),
        ("", "bad_name"),
        ("x" * 41, "bad_name"),
        ("zürich", "bad_name"),
    ],
)
def test_a_teams_short_name_can_be_a_namespace(slug: str, answer: str) -> None:
    assert code(team_policy.slug_refusal(slug)) == answer


@pytest.mark.parametrize(
    ("by", "answer"),
    [
        (person(2, Role.OPERATOR), "yes"),
        (person(2, Role.ADMIN), "yes"),
        (system_actor("demo"), "yes"),
        (person(2, Role.APPROVER), "not_allowed"),
        (person(2), "not_allowed"),
    ],
)
def test_operators_make_teams_and_suspend_namespaces(by: Actor, answer: str) -> None:
    assert code(team_policy.may_create_tenant(by)) == answer
    assert code(core_policy.may_operate(by)) == answer
