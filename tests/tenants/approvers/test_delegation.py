"""Approval by a delegate: who may be named, which requests the delegate may decide, and when the delegation ends."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from accounts.core.actor import Actor
from accounts.models import Delivery, Event, Role, Scope, User
from catalog.models import GpuClass
from portal.core.errors import Refused
from tenants.approvers import queries
from tenants.approvers.delegation import actions as delegation_actions
from tenants.approvers.delegation.queries import delegation_rows
from tenants.models import ApproverFor, Deputy, QuotaLine, QuotaRequest, TeamRequest, Tenant
from tenants.onboarding.bundles import actions as bundle_actions
from tenants.onboarding.team_requests import actions as team_request_actions
from tenants.onboarding.team_requests import queries as teams
from tenants.requests import actions
from tenants.requests import queries as request_queries
from tenants.requests.decisions import actions as decision_actions
from tenants.requests.decisions.types import Decision
from tenants.requests.types import RequestedLine
from tests.support.rows import make
from tests.support.threads import in_threads


def page(user: User) -> Actor:
    return Actor(user=user, via="page")


def days(count: float) -> datetime:
    return timezone.now() + timedelta(days=count)


def as_(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def refused(verb: Callable[[], Any]) -> str:
    with pytest.raises(Refused) as error:
        verb()
    return error.value.code


def name(by: User, who: User, *, since: float = 0, until: float = 10) -> Deputy:
    return delegation_actions.name_delegate(email=who.email, starts=days(since), ends=days(until), by=page(by))


def file(by: User, slug: str, team: str = "team-a") -> QuotaRequest:
    asked = RequestedLine(slug, 2, timezone.now(), days(30))
    return actions.file_request(team, lines=[asked], justification="Two trainings.", by=page(by))


def deny(request: QuotaRequest, by: User) -> None:
    decisions = [Decision(line.pk, approve=False, reason="No cards.") for line in request.lines.all()]
    decision_actions.decide_request(request.pk, decisions, by=page(by))


@pytest.fixture
def dave(db: None) -> User:
    return make.user("Dave")


@pytest.fixture
def filed(team_a: Tenant, a100: GpuClass, alice: User, dana: User) -> QuotaRequest:
    GpuClass.objects.update(promise_limit=8)
    return file(alice, a100.slug)


# ---- decisions by a delegate -------------------------------------------------------------------------------------


def test_a_deputy_decides_and_the_record_says_for_whom(filed: QuotaRequest, dana: User, dave: User) -> None:
    assert as_(dave).get(f"/requests/{filed.pk}").status_code == 404
    name(dana, dave)
    assert [row.pk for row in request_queries.requests_to_decide(queries.rights_of(page(dave)))] == [filed.pk]
    inbox = as_(dave).get("/inbox").text
    assert f'href="/requests/{filed.pk}"' in inbox
    assert 'href="/delegations">Delegate<' in inbox
    assert "as Dave, delegate for Dana" in as_(dave).get(f"/requests/{filed.pk}").text
    assert "as Dana, approver" in as_(dana).get(f"/requests/{filed.pk}").text
    line = filed.lines.get()
    decision_actions.decide_request(filed.pk, [Decision(line.pk, approve=True)], by=page(dave))
    line.refresh_from_db()
    assert (line.decided_by, line.facts["deputy_for"]) == (dave, "Dana")
    event = Event.objects.get(verb="request.decided")
    assert (event.actor, event.after["lines"][0]["deputy_for"]) == ("Dave", "Dana")
    assert "Dave, delegate for Dana" in as_(dana).get(f"/requests/{filed.pk}").text


def test_who_decides_by_the_own_right_is_nobodys_deputy(filed: QuotaRequest, dana: User) -> None:
    dora = make.approver("Dora")
    name(dana, dora)
    deny(filed, dora)
    assert "deputy_for" not in filed.lines.get().facts


def test_nobody_gives_more_than_there_is_at_that_moment(filed: QuotaRequest, a100: GpuClass, dave: User) -> None:
    other = make.gpu_class(a100.cluster, slug="mig", resource="nvidia.com/mig-1g.10gb")
    dora = make.approver("Dora", gpu_class=other)
    name(dora, dave)
    assert refused(lambda: deny(filed, dave)) == "not_found"
    ApproverFor.objects.create(user=dora, gpu_class=a100)
    deny(filed, dave)


def test_never_what_the_approver_asked_for_or_for_a_team_of_the_approver(
    filed: QuotaRequest, team_a: Tenant, dana: User, dave: User
) -> None:
    name(dana, dave)
    make.member(team_a, dana)
    assert refused(lambda: deny(filed, dave)) == "not_your_class"
    assert not request_queries.requests_to_decide(queries.rights_of(page(dave))).exists()
    team_a.memberships.filter(user=dana).delete()
    QuotaRequest.objects.update(filed_by=dana)
    assert refused(lambda: deny(filed, dave)) == "not_your_class"
    assert not request_queries.requests_to_decide(queries.rights_of(page(dave))).exists()
    # The right of another approver does cover it.
    name(make.approver("Dora"), dave)
    deny(filed, dave)
    assert filed.lines.get().facts["deputy_for"] == "Dora"


def test_never_the_deputys_own(filed: QuotaRequest, team_a: Tenant, dana: User, alice: User, bob: User) -> None:
    name(dana, alice)
    assert refused(lambda: deny(filed, alice)) == "own_request"
    Deputy.objects.all().delete()
    name(dana, bob)
    assert refused(lambda: deny(filed, bob)) == "own_team"


VOID: dict[str, Callable[[User, User], object]] = {
    "the role is taken": lambda approver, _: User.objects.filter(pk=approver.pk).update(roles=[]),
    "the approver is suspended": lambda approver, _: User.objects.filter(pk=approver.pk).update(is_active=False),
    "it is over": lambda *_: Deputy.objects.update(period=(days(-3), days(-1))),
    "it has not begun": lambda *_: Deputy.objects.update(period=(days(1), days(3))),
    "the approver ends it": lambda approver, _: delegation_actions.end_delegation(
        Deputy.objects.get().pk, by=page(approver)
    ),
    "the deputy ends it": lambda _, deputy: delegation_actions.end_delegation(Deputy.objects.get().pk, by=page(deputy)),
}


@pytest.mark.parametrize("why", list(VOID))
def test_it_is_void_at_once(filed: QuotaRequest, dana: User, dave: User, why: str) -> None:
    name(dana, dave)
    assert queries.rights_of(page(dave)).classes is None
    VOID[why](dana, dave)
    assert not queries.rights_of(page(dave))
    assert refused(lambda: deny(filed, dave)) == "not_found"
    assert as_(dave).get(f"/requests/{filed.pk}").status_code == 404
    assert as_(dave).get("/inbox").status_code == 403
    assert "Inbox" not in as_(dave).get("/catalog").text
    assert dave not in queries.approvers_of([filed.lines.get().gpu_class_id], tenant=filed.tenant)


def test_who_is_asked_is_told_with_the_approver(
    team_a: Tenant, a100: GpuClass, alice: User, dana: User, dave: User
) -> None:
    name(dana, dave)
    Delivery.objects.all().delete()
    file(alice, a100.slug)
    assert {one.user for one in Delivery.objects.all()} == {dana, dave}


def test_the_badge_counts_for_the_deputy_in_a_team_or_none(filed: QuotaRequest, dana: User, dave: User) -> None:
    name(dana, dave)
    assert "Inbox" in as_(dave).get("/catalog").text
    team = make.tenant(filed.tenant.namespaces.get().cluster, slug="team-d", namespace="team-d")
    make.member(team, dave)
    assert "Inbox" in as_(dave).get("/catalog").text


def test_a_deputy_founds_teams(limited: GpuClass, olga: User, dana: User, dave: User, charlie: User) -> None:
    bundle_actions.put_bundle(name="Training", lines=[(limited.slug, 2)], by=page(olga))
    row = team_request_actions.request_team(name="Robots", purpose="Grasping.", bundle="Training", by=page(charlie))
    assert refused(lambda: team_request_actions.decide_team(row.pk, approve=True, by=page(dave))) == "not_found"
    name(dana, dave)
    assert list(teams.team_requests_to_decide(queries.rights_of(page(dave)))) == [row]
    assert dave in teams.deciders(row.bundle)
    assert "as Dave, delegate for Dana" in as_(dave).get(f"/team-requests/{row.pk}").text
    TeamRequest.objects.update(user=dana)
    assert not teams.team_requests_to_decide(queries.rights_of(page(dave))).exists()
    assert refused(lambda: team_request_actions.decide_team(row.pk, approve=True, by=page(dave))) == "not_your_class"
    TeamRequest.objects.update(user=charlie)
    team_request_actions.decide_team(row.pk, approve=True, by=page(dave))
    assert Event.objects.get(verb="team.decided").after["deputy_for"] == ["Dana"]
    assert QuotaLine.objects.get().facts["deputy_for"] == "Dana"


@pytest.fixture
def limited(a100: GpuClass) -> GpuClass:
    GpuClass.objects.filter(pk=a100.pk).update(promise_limit=8)
    a100.refresh_from_db()
    return a100


# ---- naming a delegate -------------------------------------------------------------------------------------------


def test_who_is_named_is_told(dana: User, dave: User) -> None:
    row = name(dana, dave)
    event = Event.objects.get(verb="deputy.named")
    assert (event.actor, event.name, event.after["user"]) == ("Dana", "delegate Dave for Dana", dave.email)
    [told] = Delivery.objects.all()
    assert (told.user, told.subject) == (dave, "You are a delegate of Dana")
    delegation_actions.end_delegation(row.pk, by=page(dana))
    assert Event.objects.filter(verb="deputy.ended").count() == 1
    assert Delivery.objects.filter(user=dave, subject="Dave is no longer a delegate of Dana").count() == 1
    assert refused(lambda: delegation_actions.end_delegation(row.pk, by=page(dana))) == "is_over"


def test_what_was_lent_is_not_lent_on(dana: User, dave: User, bob: User, olga: User) -> None:
    name(dana, dave)
    for nobody in (dave, bob, olga):
        assert refused(lambda nobody=nobody: name(nobody, make.user(f"To {nobody.name}"))) == "not_allowed"


def test_an_approver_passes_on_the_own_classes_only(filed: QuotaRequest, a100: GpuClass, dana: User, bob: User) -> None:
    other = make.gpu_class(a100.cluster, slug="mig", resource="nvidia.com/mig-1g.10gb")
    dora = make.approver("Dora", gpu_class=other)
    name(dana, dora)
    name(dora, bob)
    assert queries.rights_of(page(bob)).classes == {"mig"}
    assert queries.rights_of(page(dora)).classes is None


@pytest.mark.parametrize(
    ("typed", "code"),
    [
        ({"email": "nobody@example.org"}, "unknown_person"),
        ({"email": "dana@example.org"}, "is_self"),
        ({"email": "sue@example.org"}, "suspended"),
        ({"ends": days(-1)}, "bad_period"),
        ({"starts": days(3), "ends": days(2)}, "bad_period"),
        ({"ends": days(93)}, "bad_period"),
    ],
)
def test_what_cannot_be_named(dana: User, dave: User, typed: dict[str, Any], code: str) -> None:
    make.user("Sue", is_active=False)
    values = {"email": dave.email, "starts": days(0), "ends": days(10), **typed}
    assert refused(lambda: delegation_actions.name_delegate(by=page(dana), **values)) == code
    assert not Deputy.objects.exists()
    assert not Event.objects.exists()


def test_an_approver_of_nothing_has_nothing_to_give(dave: User) -> None:
    idle = make.user("Idle", roles=[Role.APPROVER])
    assert refused(lambda: name(idle, dave)) == "nothing_to_give"


def test_a_token_that_may_not_decide_names_nobody(dana: User, dave: User) -> None:
    by = Actor(user=dana, via="token x", scopes=frozenset({Scope.READ, Scope.REQUEST}))
    verb = lambda: delegation_actions.name_delegate(email=dave.email, starts=days(0), ends=days(1), by=by)  # noqa: E731
    assert refused(verb) == "missing_scope"


@pytest.mark.django_db(transaction=True)
def test_of_two_who_are_named_at_once_one_is(dana: User, dave: User, bob: User) -> None:
    answers: list[str] = []

    def naming(who: User) -> Callable[[], None]:
        def run() -> None:
            client = as_(dana)
            body = json.dumps({"email": who.email, "ends_at": days(5).isoformat()})
            answer: Any = client.post("/api/v1/delegations", body, content_type="application/json")
            answers.append("" if answer.status_code == 201 else answer.json()["code"])

        return run

    in_threads(0, lambda: None, naming(dave), naming(bob))
    assert sorted(answers) == ["", "has_delegate"]
    assert Deputy.objects.count() == 1


# ---- page, API and command ---------------------------------------------------------------------------------------


def test_the_page_names_and_ends(dana: User, dave: User, charlie: User) -> None:
    today = timezone.localdate()
    typed = {"email": dave.email, "starts_at": f"{today}", "ends_at": f"{today + timedelta(days=7)}"}
    assert "Name delegate" in as_(dana).get("/delegations").text
    assert "No account has the address" in as_(dana).post("/delegations", {**typed, "email": "no@example.org"}).text
    told = as_(dana).post("/delegations", typed, follow=True).text
    assert "Dave is your delegate in this period and is notified by email." in told
    again = as_(dana).post("/delegations", {**typed, "email": charlie.email})
    assert again.status_code == 422
    assert "You already have a delegate in this period" in again.text
    row = Deputy.objects.get()
    assert "End now" in as_(dave).get("/delegations").text
    assert "Name delegate" not in as_(dave).get("/delegations").text
    assert "Dave" not in as_(charlie).get("/delegations").text
    assert as_(charlie).post(f"/delegations/{row.pk}/end").status_code == 404
    assert as_(make.user("Otto", roles=[Role.OPERATOR])).post(f"/delegations/{row.pk}/end").status_code == 403
    assert as_(dave).post(f"/delegations/{row.pk}/end").status_code == 302
    assert delegation_rows(page(dana)) == []


def test_the_same_by_rest(dana: User, dave: User, charlie: User) -> None:
    body = json.dumps({"email": dave.email, "ends_at": days(5).isoformat()})
    named: Any = as_(dana).post("/api/v1/delegations", body, content_type="application/json")
    assert (named.status_code, named.json()["state"], named.json()["delegate"]) == (201, "now", "Dave")
    listed: Any = as_(dave).get("/api/v1/delegations")
    assert [one["approver"] for one in listed.json()["items"]] == ["Dana"]
    assert as_(charlie).get("/api/v1/delegations").json() == {"items": [], "next": None}
    refusal: Any = as_(charlie).post("/api/v1/delegations", body, content_type="application/json")
    assert (refusal.status_code, refusal.json()["code"]) == (403, "not_allowed")
    path = f"/api/v1/delegations/{named.json()['id']}/end"
    assert as_(charlie).post(path).status_code == 404
    ended: Any = as_(dave).post(path, content_type="application/json")
    assert (ended.status_code, ended.json()["state"]) == (200, "over")


def test_the_same_by_command(filed: QuotaRequest, dana: User, dave: User) -> None:
    said = io.StringIO()
    until = timezone.localdate() + timedelta(days=7)
    words = ["delegate", "--to", dave.email, "--until", f"{until}", "--as"]
    with pytest.raises(CommandError, match="Only approvers can name a delegate"):
        call_command("quota", *words, dave.email)
    call_command("quota", *words, dana.email, stdout=said)
    row = Deputy.objects.get()
    assert f"Delegation {row.pk}: Dave decides for Dana from" in said.getvalue()
    call_command("quota", "deny", f"{filed.pk}", "--reason", "No.", "--as", dave.email, stdout=said)
    assert "denied by Dave, delegate for Dana" in said.getvalue()
    call_command("quota", "undelegate", f"{row.pk}", "--as", dave.email, stdout=said)
    assert not queries.rights_of(page(dave))


def test_a_void_one_says_so(dana: User, dave: User) -> None:
    name(dana, dave)
    name(make.approver("Dora"), dave, since=2)
    User.objects.filter(pk=dana.pk).update(roles=[])
    assert {row.approver: row.state for row in delegation_rows(page(dave))} == {"Dana": "void", "Dora": "later"}


def test_rights_cost_the_same_however_many_there_are(
    dana: User, dave: User, a100: GpuClass, django_assert_num_queries: Any
) -> None:
    with django_assert_num_queries(1):
        queries.rights_of(page(dana))
    with django_assert_num_queries(1):
        queries.rights_of(page(dave))
    for number in range(5):
        name(make.approver(f"D{number}"), dave)
    with django_assert_num_queries(3):
        assert len(queries.rights_of(page(dave)).lent) == 5
