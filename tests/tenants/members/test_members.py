"""How people join a team, change their role and leave it: the verbs, by every role."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from allauth.account.models import EmailAddress
from django.core import mail
from django.db import IntegrityError, connection
from django.test import Client
from django.utils import timezone

from accounts import tasks
from accounts.core.actor import Actor
from accounts.models import Delivery, Event, User
from portal.core.errors import Refused
from tenants.members import actions
from tenants.members.invitations import actions as invitation_actions
from tenants.members.invitations import queries as invitation_queries
from tenants.models import Invitation, JoinRequest, Membership, Tenant
from tests.support.rows import make


def page(user: User) -> Actor:
    return Actor(user=user, via="page")


def refused(verb: Callable[[], Any]) -> tuple[str, str | None]:
    with pytest.raises(Refused) as error:
        verb()
    return error.value.code, error.value.refusal.field


def set_role(team: Tenant, user: User, role: str) -> None:
    Membership.objects.filter(tenant=team, user=user).update(role=role)


# ---- roles -------------------------------------------------------------------------------------------------------


def test_an_owner_changes_a_role_and_the_person_is_told(team_a: Tenant, alice: User, bob: User) -> None:
    actions.set_role("team-a", user_id=bob.pk, role="manager", by=page(alice))
    assert team_a.memberships.get(user=bob).role == "manager"
    event = Event.objects.get(verb="member.changed")
    assert (event.before, event.after) == ({"user": bob.email, "role": "member"}, {"role": "manager"})
    assert Delivery.objects.get().user == bob


def test_the_same_role_again_changes_nothing(team_a: Tenant, alice: User, bob: User) -> None:
    actions.set_role("team-a", user_id=bob.pk, role="member", by=page(alice))
    assert not Event.objects.exists()


def test_the_last_owner_stays_one(team_a: Tenant, alice: User, bob: User) -> None:
    verb = lambda: actions.set_role("team-a", user_id=alice.pk, role="member", by=page(alice))  # noqa: E731
    assert refused(verb) == ("last_owner", None)
    set_role(team_a, bob, "owner")
    verb()
    assert team_a.memberships.get(user=alice).role == "member"


@pytest.mark.parametrize(
    ("role", "to", "expected"),
    [
        ("member", "manager", "not_allowed"),
        ("viewer", "member", "not_allowed"),
        ("manager", "owner", "not_allowed"),
        ("manager", "president", "unknown_role"),
        ("manager", "viewer", ""),
        ("owner", "owner", ""),
    ],
)
def test_who_may_give_which_role(
    team_a: Tenant, alice: User, bob: User, charlie: User, role: str, to: str, expected: str
) -> None:
    make.member(team_a, charlie)
    set_role(team_a, bob, role)
    verb = lambda: actions.set_role("team-a", user_id=charlie.pk, role=to, by=page(bob))  # noqa: E731
    if expected:
        assert refused(verb)[0] == expected
        assert team_a.memberships.get(user=charlie).role == "member"
    else:
        verb()
        assert team_a.memberships.get(user=charlie).role == to


def test_a_manager_does_not_demote_an_owner(team_a: Tenant, alice: User, bob: User, charlie: User) -> None:
    make.member(team_a, charlie, Membership.Role.OWNER)
    set_role(team_a, bob, "manager")
    assert (
        refused(lambda: actions.set_role("team-a", user_id=alice.pk, role="member", by=page(bob)))[0] == "not_allowed"
    )


@pytest.mark.django_db(transaction=True)
def test_two_owners_who_step_down_at_once_leave_one(team_a: Tenant, alice: User, bob: User) -> None:
    set_role(team_a, bob, "owner")
    ready, answers = threading.Barrier(2), []

    def step_down(user: User) -> None:
        ready.wait()
        try:
            actions.set_role("team-a", user_id=user.pk, role="member", by=page(user))
            answers.append("done")
        except Refused as error:
            answers.append(error.code)
        finally:
            connection.close()

    threads = [threading.Thread(target=step_down, args=(user,)) for user in (alice, bob)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == ["done", "last_owner"]
    assert team_a.memberships.filter(role="owner").count() == 1


# ---- invitations -------------------------------------------------------------------------------------------------


@pytest.fixture
def invitation(team_a: Tenant, alice: User) -> Invitation:
    row = actions.add_member("team-a", email="New@Example.org ", role="member", by=page(alice))
    assert isinstance(row, Invitation)
    return row


def test_an_address_without_an_account_is_invited_by_mail(invitation: Invitation) -> None:
    tasks.deliver()
    [message] = mail.outbox
    assert message.to == ["new@example.org"]
    assert message.subject == "Invitation to Team A"
    assert "Alice invites you to join Team A with the role member" in message.body
    assert "/start" in message.body
    assert not Membership.objects.filter(user__email="new@example.org").exists()


def test_who_signs_in_with_the_address_accepts(invitation: Invitation, team_a: Tenant, alice: User) -> None:
    new = make.user("New")
    [seen] = invitation_queries.invitations_for(page(new), at=timezone.now())
    assert (seen.team, seen.role, seen.by) == ("Team A", "member", "Alice")
    invitation_actions.accept_invitation(seen.pk, by=page(new))
    assert team_a.memberships.get(user=new).role == "member"
    assert invitation_queries.invitations_for(page(new), at=timezone.now()) == []
    assert Delivery.objects.filter(user=alice, subject="New now has the role member in Team A").exists()
    assert refused(lambda: invitation_actions.accept_invitation(seen.pk, by=page(new)))[0] == "already_decided"


def test_an_invitation_is_for_its_address_only(invitation: Invitation, charlie: User) -> None:
    assert refused(lambda: invitation_actions.accept_invitation(invitation.pk, by=page(charlie)))[0] == "not_found"
    assert refused(lambda: invitation_actions.decline_invitation(invitation.pk, by=page(charlie)))[0] == "not_found"
    assert invitation_queries.invitations_for(page(charlie), at=timezone.now()) == []


def test_an_address_that_is_only_claimed_brings_nothing(
    invitation: Invitation, team_a: Tenant, alice: User, client: Client
) -> None:
    """An unverified address gives neither the invitations sent to it nor a membership that nobody accepted."""
    claims = make.user("New")
    EmailAddress.objects.filter(user=claims).update(verified=False)
    client.force_login(claims)
    assert refused(lambda: invitation_actions.accept_invitation(invitation.pk, by=page(claims)))[0] == "not_found"
    assert invitation_queries.invitations_for(page(claims), at=timezone.now()) == []
    assert client.get("/api/v1/invitations").json()["items"] == []
    invitation_actions.revoke_invitation("team-a", invitation.pk, by=page(alice))
    assert isinstance(actions.add_member("team-a", email=claims.email, role="member", by=page(alice)), Invitation)
    assert not team_a.memberships.filter(user=claims).exists()


def test_an_address_that_was_changed_is_not_verified(invitation: Invitation, charlie: User) -> None:
    charlie.email = "new@example.org"
    charlie.save()
    assert refused(lambda: invitation_actions.accept_invitation(invitation.pk, by=page(charlie)))[0] == "not_found"


def test_a_lapsed_invitation_is_not_accepted_and_makes_room_for_another(
    invitation: Invitation, team_a: Tenant, alice: User
) -> None:
    new = make.user("New")
    Invitation.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert refused(lambda: invitation_actions.accept_invitation(invitation.pk, by=page(new)))[0] == "lapsed"
    assert invitation_queries.invitations_for(page(new), at=timezone.now()) == []
    User.objects.filter(pk=new.pk).delete()
    again = actions.add_member("team-a", email="new@example.org", role="viewer", by=page(alice))
    assert isinstance(again, Invitation)
    assert Invitation.objects.get(pk=invitation.pk).state == "revoked"


def test_one_invitation_an_address(invitation: Invitation, alice: User) -> None:
    with pytest.raises(IntegrityError, match="one_pending_invitation"):
        actions.add_member("team-a", email="new@example.org", role="viewer", by=page(alice))


def test_what_was_revoked_or_declined_is_over(invitation: Invitation, team_a: Tenant, alice: User, bob: User) -> None:
    assert (
        refused(lambda: invitation_actions.revoke_invitation("team-a", invitation.pk, by=page(bob)))[0] == "not_allowed"
    )
    invitation_actions.revoke_invitation("team-a", invitation.pk, by=page(alice))
    new = make.user("New")
    assert refused(lambda: invitation_actions.accept_invitation(invitation.pk, by=page(new)))[0] == "already_decided"
    assert refused(lambda: invitation_actions.decline_invitation(invitation.pk, by=page(new)))[0] == "already_decided"
    assert not team_a.memberships.filter(user=new).exists()


@pytest.mark.parametrize("typed", ["nobody", "a b@example.org", "x@localhost", ""])
def test_what_is_no_address_is_not_invited(team_a: Tenant, alice: User, typed: str) -> None:
    assert refused(lambda: actions.add_member("team-a", email=typed, role="member", by=page(alice))) == (
        "bad_address",
        "email",
    )
    assert not Invitation.objects.exists()


def test_a_suspended_account_is_neither_added_nor_invited(team_a: Tenant, alice: User, charlie: User) -> None:
    User.objects.filter(pk=charlie.pk).update(is_active=False)
    verb = lambda: actions.add_member("team-a", email=charlie.email, role="member", by=page(alice))  # noqa: E731
    assert refused(verb) == ("suspended", "email")


# ---- join requests -----------------------------------------------------------------------------------------------


@pytest.fixture
def join(team_a: Tenant, charlie: User) -> JoinRequest:
    return invitation_actions.ask_to_join("team-a", message=" I do  the evaluations. ", by=page(charlie))


def test_owners_and_managers_are_told_of_who_wants_in(
    join: JoinRequest, team_a: Tenant, alice: User, bob: User
) -> None:
    [told] = Delivery.objects.all()
    assert told.user == alice
    assert "I do the evaluations." in told.body
    assert [one.team for one in invitation_queries.join_requests_of(page(join.user))] == ["Team A"]
    assert [one.user for one in invitation_queries.pending_members(team_a).joins] == [join.user]


def test_who_is_let_in_is_a_member(join: JoinRequest, team_a: Tenant, alice: User, charlie: User) -> None:
    invitation_actions.answer_join("team-a", join.pk, accept=True, role="viewer", by=page(alice))
    assert team_a.memberships.get(user=charlie).role == "viewer"
    assert invitation_queries.join_requests_of(page(charlie)) == []
    assert (
        refused(lambda: invitation_actions.answer_join("team-a", join.pk, accept=True, by=page(alice)))[0]
        == "already_decided"
    )


def test_a_no_has_a_reason_that_the_person_reads(join: JoinRequest, alice: User, charlie: User) -> None:
    no = lambda reason: invitation_actions.answer_join("team-a", join.pk, accept=False, reason=reason, by=page(alice))  # noqa: E731
    assert refused(lambda: no(" ")) == ("reason_missing", "reason")
    assert JoinRequest.objects.get().state == "pending"
    no("We are full.")
    [seen] = invitation_queries.join_requests_of(page(charlie))
    assert (seen.state, seen.reason) == ("declined", "We are full.")
    assert "We are full." in Delivery.objects.get(user=charlie).body
    invitation_actions.ask_to_join("team-a", message="", by=page(charlie))


def test_members_answer_nobody_and_a_manager_makes_no_owner(join: JoinRequest, team_a: Tenant, bob: User) -> None:
    answer = lambda role: invitation_actions.answer_join("team-a", join.pk, accept=True, role=role, by=page(bob))  # noqa: E731
    assert refused(lambda: answer("member"))[0] == "not_allowed"
    set_role(team_a, bob, "manager")
    assert refused(lambda: answer("owner")) == ("not_allowed", "role")
    assert JoinRequest.objects.get().state == "pending"
    answer("member")


def test_asking_twice_is_asking_once(join: JoinRequest, charlie: User) -> None:
    with pytest.raises(IntegrityError, match="one_pending_join_request"):
        invitation_actions.ask_to_join("team-a", message="", by=page(charlie))


def test_members_and_closed_teams_are_not_asked(team_a: Tenant, bob: User, charlie: User) -> None:
    assert refused(lambda: invitation_actions.ask_to_join("team-a", message="", by=page(bob)))[0] == "already_member"
    make.close()
    assert refused(lambda: invitation_actions.ask_to_join("team-a", message="", by=page(charlie)))[0] == "closed"
    assert invitation_queries.joinable_teams(page(charlie), "team") == []


def test_only_the_person_withdraws(join: JoinRequest, alice: User, charlie: User) -> None:
    assert refused(lambda: invitation_actions.withdraw_join(join.pk, by=page(alice)))[0] == "not_found"
    invitation_actions.withdraw_join(join.pk, by=page(charlie))
    assert (
        refused(lambda: invitation_actions.answer_join("team-a", join.pk, accept=True, by=page(alice)))[0]
        == "already_decided"
    )


def test_who_is_added_meanwhile_does_not_ask_any_more(join: JoinRequest, alice: User, charlie: User) -> None:
    actions.add_member("team-a", email=charlie.email, role="member", by=page(alice))
    assert JoinRequest.objects.get().state == "accepted"


# ---- searching for teams -----------------------------------------------------------------------------------------


def test_a_team_is_found_by_two_letters_of_its_name(team_a: Tenant, charlie: User, bob: User) -> None:
    assert [one.slug for one in invitation_queries.joinable_teams(page(charlie), " tEAM  ")] == ["team-a"]
    assert invitation_queries.joinable_teams(page(charlie), "t") == []
    assert invitation_queries.joinable_teams(page(charlie), "%%") == []
    assert invitation_queries.joinable_teams(page(bob), "team") == []


def test_a_search_costs_one_query_and_lists_ten(team_a: Tenant, charlie: User, django_assert_num_queries: Any) -> None:
    for number in range(12):
        make.tenant(team_a.namespaces.get().cluster, slug=f"team-x{number}", namespace=f"{team_a.slug}-x{number}")
    with django_assert_num_queries(1):
        assert len(invitation_queries.joinable_teams(page(charlie), "team")) == 10


def test_who_is_suspended_is_known_without_reading_all_accounts(db: None) -> None:
    """Every read of an inbox asks for teams without an owner."""
    User.objects.bulk_create(User(email=f"u{number}@example.org", name=f"U{number}") for number in range(1000))
    with connection.cursor() as cursor:
        cursor.execute(f"ANALYZE {User._meta.db_table}")
    assert "user_suspended" in User.objects.filter(is_active=False).values("pk").explain()


def test_a_team_whose_owners_are_gone_is_known(team_a: Tenant, alice: User) -> None:
    assert invitation_queries.teams_without_owner() == []
    User.objects.filter(pk=alice.pk).update(is_active=False)
    assert invitation_queries.teams_without_owner() == [team_a]
    make.close()
    assert invitation_queries.teams_without_owner() == []
