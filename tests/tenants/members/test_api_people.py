"""People by REST: members, invitations and requests to join, with the refusals of the pages."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from accounts.core.actor import Actor
from accounts.models import Event, Scope, User
from tenants.members import actions as member_actions
from tenants.members.invitations import actions as invitation_actions
from tenants.models import Invitation, JoinRequest, Membership, Tenant
from tests.support.http.callers import caller, send, told
from tests.support.rows import make

MEMBERS = "/api/v1/teams/team-a/members"


def items(client: Client, path: str) -> list[dict[str, Any]]:
    answer = client.get(path)
    assert answer.status_code == 200, answer.content
    found: list[dict[str, Any]] = answer.json()["items"]
    return found


def role_of(user: User) -> str | None:
    return Membership.objects.filter(user=user).values_list("role", flat=True).first()


# ---- members -----------------------------------------------------------------------------------------------------


def test_a_person_with_an_account_is_added_promoted_and_removed(team_a: Tenant, alice: User, charlie: User) -> None:
    client = caller(alice)
    made = send(client, "POST", MEMBERS, {"email": charlie.email})
    assert made.status_code == 201
    assert made.json().items() >= {"id": charlie.pk, "email": charlie.email, "role": "member"}.items()
    one = f"{MEMBERS}/{charlie.pk}"
    changed = send(client, "PATCH", one, {"role": "manager"})
    assert (changed.status_code, changed.json()["role"], role_of(charlie)) == (200, "manager", "manager")
    assert send(client, "DELETE", one).status_code == 204
    assert role_of(charlie) is None
    assert told(send(client, "DELETE", one)) == (404, "not_found", None)
    verbs = list(Event.objects.filter(tenant="team-a").order_by("id").values_list("verb", flat=True))
    assert verbs == ["member.added", "member.changed", "member.removed"]


def test_members_are_listed_with_the_ids_that_the_addresses_take(team_a: Tenant, alice: User, bob: User) -> None:
    found = items(caller(bob, Scope.READ), MEMBERS)
    assert [(one["id"], one["role"]) for one in found] == [(alice.pk, "owner"), (bob.pk, "member")]
    first = caller(bob).get(f"{MEMBERS}?limit=1").json()
    second = caller(bob).get(first["next"].partition("testserver")[2]).json()
    assert [one["id"] for one in first["items"] + second["items"]] == [alice.pk, bob.pk]


@pytest.mark.parametrize("path", [MEMBERS, "/api/v1/teams/team-a/joins", "/api/v1/teams/team-a/invitations"])
def test_lists_cost_the_same_for_many(
    team_a: Tenant, alice: User, path: str, django_assert_max_num_queries: Any
) -> None:
    for number in range(10):
        make.member(team_a, make.user(f"member{number}"))
        member_actions.add_member("team-a", email=f"x{number}@example.org", role="member", by=Actor(alice, "page"))
        invitation_actions.ask_to_join("team-a", message="", by=Actor(make.user(f"joiner{number}"), "page"))
    client = Client()
    client.force_login(alice)
    client.get(path)
    # Queries: session, user, team (standing: role and namespace), rows.
    with django_assert_max_num_queries(6):
        assert len(items(client, path)) >= 10


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"email": "bob@example.org"}, (409, "already_member", "user")),
        ({"email": "nobody"}, (422, "bad_address", "email")),
        ({"email": "charlie@example.org", "role": "president"}, (422, "unknown_role", "role")),
        ({"role": "member"}, (422, "invalid", "email")),
    ],
)
def test_what_is_wrong_is_named(
    team_a: Tenant, alice: User, charlie: User, body: dict[str, str], expected: tuple[int, str, str]
) -> None:
    assert told(send(caller(alice), "POST", MEMBERS, body)) == expected
    assert team_a.memberships.count() == 2
    assert not Event.objects.filter(tenant="team-a").exists()


def test_the_last_owner_neither_leaves_nor_steps_down(team_a: Tenant, alice: User) -> None:
    client = caller(alice)
    assert told(send(client, "DELETE", f"{MEMBERS}/{alice.pk}"))[1] == "last_owner"
    assert told(send(client, "PATCH", f"{MEMBERS}/{alice.pk}", {"role": "viewer"}))[1] == "last_owner"
    assert role_of(alice) == "owner"


def test_a_member_manages_nobody_but_may_leave(team_a: Tenant, alice: User, bob: User) -> None:
    client = caller(bob)
    assert told(send(client, "POST", MEMBERS, {"email": "x@example.org"}))[1] == "not_allowed"
    assert told(send(client, "PATCH", f"{MEMBERS}/{bob.pk}", {"role": "owner"}))[1] == "not_allowed"
    assert told(send(client, "DELETE", f"{MEMBERS}/{alice.pk}"))[1] == "not_allowed"
    for what in ("joins", "invitations"):
        assert client.get(f"/api/v1/teams/team-a/{what}").status_code == 403
    assert send(client, "DELETE", f"{MEMBERS}/{bob.pk}").status_code == 204
    assert role_of(bob) is None


# ---- invitations -------------------------------------------------------------------------------------------------


@pytest.fixture
def invited(team_a: Tenant, alice: User) -> dict[str, Any]:
    answer = send(caller(alice), "POST", MEMBERS, {"email": "New@example.org", "role": "viewer"})
    assert answer.status_code == 202
    found: dict[str, Any] = answer.json()
    return found


def test_an_address_without_an_account_is_invited(invited: dict[str, Any], alice: User) -> None:
    assert invited.items() >= {"team": "team-a", "email": "new@example.org", "state": "pending"}.items()
    assert items(caller(alice, Scope.READ), "/api/v1/teams/team-a/invitations") == [invited]
    again = send(caller(alice), "POST", MEMBERS, {"email": "new@example.org"})
    assert told(again) == (409, "already_invited", "email")


def test_an_invitation_is_accepted_by_its_address(invited: dict[str, Any], charlie: User) -> None:
    path = f"/api/v1/invitations/{invited['id']}/accept"
    assert told(send(caller(charlie), "POST", path))[1] == "not_found"
    new = make.user("New")
    client = caller(new)
    assert items(client, "/api/v1/invitations") == [invited]
    assert told(send(caller(new, Scope.READ), "POST", path))[1] == "missing_scope"
    accepted = send(client, "POST", path)
    assert (accepted.status_code, accepted.json()["role"], role_of(new)) == (200, "viewer", "viewer")
    assert told(send(client, "POST", path))[1] == "already_decided"
    assert items(client, "/api/v1/invitations") == []


def test_an_invitation_is_declined_or_taken_back(invited: dict[str, Any], alice: User) -> None:
    client, revoke = caller(alice), f"/api/v1/teams/team-a/invitations/{invited['id']}"
    assert send(client, "DELETE", revoke).status_code == 204
    assert told(send(client, "DELETE", revoke))[1] == "already_decided"
    second = send(client, "POST", MEMBERS, {"email": "new@example.org"}).json()
    new = caller(make.user("New"))
    assert told(send(new, "POST", f"/api/v1/invitations/{invited['id']}/decline"))[1] == "already_decided"
    assert send(new, "POST", f"/api/v1/invitations/{second['id']}/decline").status_code == 204
    assert list(Invitation.objects.order_by("pk").values_list("state", flat=True)) == ["revoked", "declined"]


# ---- join requests -----------------------------------------------------------------------------------------------


@pytest.fixture
def joining(team_a: Tenant, charlie: User) -> dict[str, Any]:
    asked = {"team": "team-a", "message": "I do the evaluations."}
    answer = send(caller(charlie, Scope.REQUEST), "POST", "/api/v1/joins", asked)
    assert answer.status_code == 201
    found: dict[str, Any] = answer.json()
    return found


def test_who_asks_is_let_in(joining: dict[str, Any], alice: User, charlie: User) -> None:
    assert items(caller(charlie), "/api/v1/joins") == [joining]
    assert items(caller(alice, Scope.READ), "/api/v1/teams/team-a/joins") == [joining]
    path = f"/api/v1/teams/team-a/joins/{joining['id']}"
    answer = send(caller(alice), "POST", path, {"accept": True, "role": "viewer"})
    assert (answer.status_code, answer.json()["state"], role_of(charlie)) == (200, "accepted", "viewer")
    assert told(send(caller(alice), "POST", path, {"accept": True}))[1] == "already_decided"


def test_a_no_needs_a_reason(joining: dict[str, Any], alice: User, charlie: User) -> None:
    path = f"/api/v1/teams/team-a/joins/{joining['id']}"
    assert told(send(caller(alice), "POST", path, {"accept": False})) == (422, "reason_missing", "reason")
    no = {"accept": False, "reason": "We are full."}
    assert told(send(caller(alice), "POST", path, {**no, "role": "king"})) == (422, "unknown_role", "role")
    assert JoinRequest.objects.get().state == "pending"
    assert send(caller(alice), "POST", path, no).status_code == 200
    [seen] = items(caller(charlie), "/api/v1/joins")
    assert (seen["state"], seen["reason"]) == ("declined", "We are full.")


def test_asking_is_withdrawn_by_who_asked(joining: dict[str, Any], alice: User, charlie: User) -> None:
    path = f"/api/v1/joins/{joining['id']}"
    assert told(send(caller(alice), "DELETE", path))[1] == "not_found"
    assert send(caller(charlie), "DELETE", path).status_code == 204
    assert JoinRequest.objects.get().state == "withdrawn"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"team": "team-a"}, (409, "already_asked", None)),
        ({"team": "team-zzz"}, (404, "not_found", None)),
        ({"team": "team-a", "message": "x" * 301}, (422, "bad_message", "message")),
        ({}, (422, "invalid", "team")),
    ],
)
def test_what_is_wrong_with_asking_is_named(
    joining: dict[str, Any], charlie: User, body: dict[str, str], expected: tuple[int, str, str | None]
) -> None:
    assert told(send(caller(charlie), "POST", "/api/v1/joins", body)) == expected
    assert JoinRequest.objects.count() == 1


# ---- scopes, and users outside the team --------------------------------------------------------------------------


MANAGING = [
    ("POST", MEMBERS, {"email": "x@example.org"}),
    ("PATCH", MEMBERS + "/{bob}", {"role": "viewer"}),
    ("DELETE", MEMBERS + "/{bob}", None),
    ("DELETE", "/api/v1/teams/team-a/invitations/1", None),
    ("POST", "/api/v1/teams/team-a/joins/1", {"accept": True}),
]


@pytest.mark.parametrize(("method", "path", "body"), MANAGING)
def test_managing_needs_the_scope_admin(
    team_a: Tenant, alice: User, bob: User, method: str, path: str, body: Any
) -> None:
    client = caller(alice, Scope.READ, Scope.REQUEST, Scope.DECIDE, Scope.LAUNCH)
    assert told(send(client, method, path.format(bob=bob.pk), body))[:2] == (403, "missing_scope")
    assert team_a.memberships.count() == 2


@pytest.mark.parametrize("body", [None, {"email": 7}, {"role": []}])
@pytest.mark.parametrize(("method", "path", "_body"), MANAGING)
def test_for_a_stranger_there_is_no_team_whatever_is_sent(
    team_a: Tenant, bob: User, charlie: User, method: str, path: str, _body: Any, body: Any
) -> None:
    assert told(send(caller(charlie), method, path.format(bob=bob.pk), body))[:2] == (404, "not_found")
