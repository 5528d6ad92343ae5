"""The team's page and the start page: what each role sees there."""

from __future__ import annotations

import pytest
from django.test import Client

from accounts.models import Delivery, User
from tenants.models import Invitation, JoinRequest, Membership, Tenant
from tests.support.rows import make


@pytest.fixture
def as_alice(client: Client, alice: User) -> Client:
    client.force_login(alice)
    return client


@pytest.fixture
def as_charlie(charlie: User) -> Client:
    client = Client()
    client.force_login(charlie)
    return client


def text(response: object) -> str:
    return " ".join(response.content.decode().split())  # type: ignore[attr-defined]


def test_a_stranger_searches_asks_and_is_let_in(
    team_a: Tenant, as_alice: Client, as_charlie: Client, charlie: User
) -> None:
    assert "Team A" not in text(as_charlie.get("/start"))
    assert "Request to join" in text(as_charlie.get("/start?q=team"))
    asked = as_charlie.post("/start/join", {"team": "team-a", "message": "I do the evaluations."}, follow=True)
    assert "The owners of the team are notified by email" in text(asked)
    assert "Withdraw" in text(asked)
    assert "You already have a pending request." in text(as_charlie.get("/start?q=team"))
    page = text(as_alice.get("/teams/team-a/members"))
    assert "Join requests" in page
    assert "I do the evaluations." in page
    row = JoinRequest.objects.get()
    assert as_charlie.post(f"/teams/team-a/joins/{row.pk}", {"answer": "accept"}).status_code == 404
    let_in = as_alice.post(f"/teams/team-a/joins/{row.pk}", {"answer": "accept"}, follow=True)
    assert "Charlie is now a member." in text(let_in)
    assert as_charlie.get("/teams/team-a/members").status_code == 200


def test_a_no_without_a_reason_stays_on_the_page(team_a: Tenant, as_alice: Client, as_charlie: Client) -> None:
    as_charlie.post("/start/join", {"team": "team-a", "message": ""})
    row = JoinRequest.objects.get()
    refused = as_alice.post(f"/teams/team-a/joins/{row.pk}", {"answer": "decline", "reason": " "})
    assert refused.status_code == 422
    assert "Enter a reason of at most 300 characters. It is shown to the person." in text(refused)
    as_alice.post(f"/teams/team-a/joins/{row.pk}", {"answer": "decline", "reason": "We are full."})
    assert "We are full." in text(as_charlie.get("/start"))


def test_an_unknown_address_is_invited_and_the_invitation_taken_back(team_a: Tenant, as_alice: Client) -> None:
    page = as_alice.post("/teams/team-a/members/add", {"email": "new@example.org", "role": "member"}, follow=True)
    assert "new@example.org has no account yet. An invitation was sent by email." in text(page)
    assert "Invitations" in text(page)
    again = as_alice.post("/teams/team-a/members/add", {"email": "new@example.org", "role": "member"})
    assert again.status_code == 422
    assert "Revoke it first" in text(again)
    row = Invitation.objects.get()
    as_alice.post(f"/teams/team-a/invitations/{row.pk}/revoke")
    assert "new@example.org" not in text(as_alice.get("/teams/team-a/members"))


@pytest.mark.parametrize("answer", ["accept", "decline"])
def test_the_invited_person_answers_on_the_start_page(team_a: Tenant, as_alice: Client, answer: str) -> None:
    as_alice.post("/teams/team-a/members/add", {"email": "new@example.org", "role": "viewer"})
    new, client = make.user("New"), Client()
    client.force_login(new)
    assert "Invitations" in text(client.get("/start"))
    client.post(f"/start/invitations/{Invitation.objects.get().pk}", {"answer": answer})
    assert Membership.objects.filter(user=new).exists() is (answer == "accept")
    assert "Invitations" not in text(client.get("/start"))


def test_a_role_is_set_on_the_page_and_the_last_owner_has_no_choice(
    team_a: Tenant, as_alice: Client, bob: User
) -> None:
    page = as_alice.get("/teams/team-a/members").content.decode()
    assert f"/teams/team-a/members/{bob.pk}/role" in page
    assert page.count('name="role"') == 2  # Bob's field, and that of the form for a new member
    as_alice.post(f"/teams/team-a/members/{bob.pk}/role", {"role": "manager"})
    assert team_a.memberships.get(user=bob).role == "manager"
    wrong = as_alice.post(f"/teams/team-a/members/{bob.pk}/role", {"role": "king"}, follow=True)
    assert "king" in text(wrong)
    assert team_a.memberships.get(user=bob).role == "manager"


def test_members_see_neither_who_waits_nor_the_forms(
    team_a: Tenant, as_alice: Client, as_charlie: Client, bob: User
) -> None:
    as_alice.post("/teams/team-a/members/add", {"email": "new@example.org", "role": "member"})
    as_charlie.post("/start/join", {"team": "team-a", "message": ""})
    client = Client()
    client.force_login(bob)
    page = text(client.get("/teams/team-a/members"))
    assert "new@example.org" not in page
    assert "Charlie" not in page


def test_what_was_typed_stays_when_asking_is_refused(team_a: Tenant, as_charlie: Client) -> None:
    as_charlie.post("/start/join", {"team": "team-a", "message": "One."})
    again = as_charlie.post("/start/join", {"team": "team-a", "message": "Two."})
    assert again.status_code == 422
    assert "You already have a pending request to join this team" in text(again)


def test_an_operator_suspends_says_why_and_resumes(team_a: Tenant, as_alice: Client, olga: User, alice: User) -> None:
    client = Client()
    client.force_login(olga)
    client.post("/teams/team-a/namespace", {"to": "suspended", "because": "The bill is open."})
    namespace = team_a.namespaces.get()
    assert namespace.wanted == "suspended"
    page = text(as_alice.get("/teams/team-a/members"))
    assert "Suspended: no new workloads start; running workloads continue." in page
    assert "The bill is open." in page
    assert "Close the team" not in page
    [letter] = Delivery.objects.filter(user=alice)
    assert (letter.subject, "The bill is open." in letter.body) == ("Team A is suspended: no new workloads start", True)
    client.post("/teams/team-a/namespace", {"to": "suspended"})
    assert Delivery.objects.count() == 1
    client.post("/teams/team-a/namespace", {"to": "active"})
    assert "Suspended" not in text(as_alice.get("/teams/team-a/members"))


def test_closing_says_what_goes_and_asks_for_the_name(team_a: Tenant, olga: User) -> None:
    client = Client()
    client.force_login(olga)
    assert "Everything listed here is deleted" in text(client.get("/teams/team-a/members"))
    assert client.post("/teams/team-a/namespace", {"to": "closed", "confirm": "team"}).status_code == 422
    assert team_a.namespaces.get().wanted == "active"
    client.post("/teams/team-a/namespace", {"to": "closed", "confirm": "team-a"})
    assert team_a.namespaces.get().wanted == "closed"


@pytest.mark.parametrize("to", ["suspended", "closed", "nonsense", ""])
def test_owners_do_not_operate_and_nonsense_changes_nothing(
    team_a: Tenant, as_alice: Client, olga: User, to: str
) -> None:
    assert as_alice.post("/teams/team-a/namespace", {"to": to, "confirm": "team-a"}).status_code == 403
    client = Client()
    client.force_login(olga)
    assert to in ("suspended", "closed") or client.post("/teams/team-a/namespace", {"to": to}).status_code == 422
    assert team_a.namespaces.get().wanted == "active"
