"""How many mails one person can cause in the mailbox of another."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import transaction
from django.utils import timezone

from accounts.core.actor import Actor, system_actor
from accounts.events import actions, queries
from accounts.models import Delivery, Event, Scope, User
from catalog.models import GpuClass
from portal.core.errors import Refused
from tenants.members import actions as member_actions
from tenants.members.invitations import actions as invitation_actions
from tenants.members.policy import INVITATIONS_MAX, INVITATIONS_TO_ADDRESS_MAX
from tenants.models import Invitation, JoinRequest, QuotaRequest, Tenant
from tenants.requests import actions as request_actions
from tenants.requests.comments.actions import MAIL_INTERVAL, comment_request
from tenants.requests.types import RequestedLine
from tests.support.http.callers import caller, send, told

pytestmark = pytest.mark.django_db


def page(user: User) -> Actor:
    return Actor(user, "page")


@pytest.fixture
def filed(team_a: Tenant, a100: GpuClass, alice: User, dana: User) -> QuotaRequest:
    asked = RequestedLine(a100.slug, 2, timezone.now(), timezone.now() + timedelta(days=30))
    row = request_actions.file_request("team-a", lines=[asked], justification="Two trainings.", by=page(alice))
    Delivery.objects.all().delete()
    return row


def mails_to(user: User) -> list[Delivery]:
    return list(Delivery.objects.filter(user=user).order_by("pk"))


def later(delta: timedelta) -> None:
    """As if all of it had happened earlier."""
    with transaction.atomic():
        from django.db import connection

        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE accounts_event DISABLE TRIGGER USER")
            cursor.execute("UPDATE accounts_event SET at = at - %s", [delta])
            cursor.execute("ALTER TABLE accounts_event ENABLE TRIGGER USER")


def test_comments_of_an_interval_are_one_mail(filed: QuotaRequest, alice: User, dana: User) -> None:
    for number in range(200):
        comment_request(filed.pk, text=f"Comment {number:03}.", by=page(alice))
    first, together = mails_to(dana)
    assert "Comment 000." in first.body
    assert first.subject == f"Alice commented on request #{filed.pk} of Team A"
    assert "Comment 001." in together.body
    assert "Comment 002." in together.body
    assert together.subject == "Several messages from Alice"
    assert together.body.endswith("There are more messages on the portal's pages.")
    assert len(together.body) <= 4000
    assert timedelta(minutes=9) < together.due_at - timezone.now() <= MAIL_INTERVAL  # type: ignore[operator]


def test_after_the_interval_a_comment_is_sent_at_once(filed: QuotaRequest, alice: User, dana: User) -> None:
    comment_request(filed.pk, text="One.", by=page(alice))
    later(MAIL_INTERVAL)
    comment_request(filed.pk, text="Two.", by=page(alice))
    now = timezone.now()
    assert [mail.due_at <= now for mail in mails_to(dana) if mail.due_at] == [True, True]


def test_comments_of_another_person_do_not_wait(filed: QuotaRequest, alice: User, bob: User, dana: User) -> None:
    comment_request(filed.pk, text="One.", by=page(alice))
    comment_request(filed.pk, text="Two.", by=page(bob))
    assert [mail.subject.split()[0] for mail in mails_to(dana)] == ["Alice", "Bob"]


def test_a_mail_that_is_being_sent_is_not_added_to(filed: QuotaRequest, alice: User, dana: User) -> None:
    for text in ("One.", "Two."):
        comment_request(filed.pk, text=text, by=page(alice))
    Delivery.objects.filter(body__contains="Two.").update(leased_until=timezone.now() + timedelta(minutes=1))
    comment_request(filed.pk, text="Three.", by=page(alice))
    assert [("Three." in mail.body) for mail in mails_to(dana)] == [False, False, True]


def test_whatever_a_person_does_again_and_again(team_a: Tenant, alice: User, bob: User) -> None:
    """Here: the role of a member, to and fro."""
    for number in range(60):
        role = ("viewer", "member")[number % 2]
        member_actions.set_role("team-a", user_id=bob.pk, role=role, by=page(alice))
    mails = mails_to(bob)
    assert len(mails) == queries.MAILS_AT_ONCE + 1
    waiting = mails[-1]
    assert waiting.subject == "Several messages from Alice"
    assert timedelta(minutes=55) < waiting.due_at - timezone.now() <= queries.MAIL_INTERVAL  # type: ignore[operator]


def test_join_requests_to_and_fro(team_a: Tenant, alice: User, charlie: User) -> None:
    for _ in range(40):
        row = invitation_actions.ask_to_join("team-a", message="Please.", by=page(charlie))
        invitation_actions.withdraw_join(row.pk, by=page(charlie))
    assert len(mails_to(alice)) == queries.MAILS_AT_ONCE + 1
    assert JoinRequest.objects.count() == 40


def test_the_portal_itself_and_mails_to_oneself_are_not_held_back(alice: User) -> None:
    for by in (system_actor("test"), page(alice)):
        for _ in range(queries.MAILS_AT_ONCE + 5):
            with transaction.atomic():
                actions.deliver(actions.record(by, "a.b", alice), [alice], subject="Now", body="Now")
    assert len(mails_to(alice)) == 2 * (queries.MAILS_AT_ONCE + 5)


# ---- invitations ---------------------------------------------------------------------------------------------------


def test_an_address_is_invited_three_times_a_day(team_a: Tenant, alice: User) -> None:
    client, body = caller(alice, Scope.ADMIN), {"email": "new@example.com", "role": "member"}
    for _ in range(INVITATIONS_TO_ADDRESS_MAX):
        made = send(client, "POST", "/api/v1/teams/team-a/members", body)
        assert made.status_code == 202
        invitation_actions.revoke_invitation("team-a", Invitation.objects.latest("pk").pk, by=page(alice))
    refused = send(client, "POST", "/api/v1/teams/team-a/members", body)
    assert told(refused) == (409, "too_many_invitations", "email")
    assert "3 invitations" in refused.json()["message"]
    other = send(client, "POST", "/api/v1/teams/team-a/members", body | {"email": "other@example.com"})
    assert other.status_code == 202
    Invitation.objects.update(invited_at=timezone.now() - timedelta(days=1, seconds=1))
    assert send(client, "POST", "/api/v1/teams/team-a/members", body).status_code == 202
    assert Delivery.objects.filter(address="new@example.com").count() == INVITATIONS_TO_ADDRESS_MAX + 1


def test_a_team_invites_fifty_addresses_a_day(team_a: Tenant, alice: User) -> None:
    for number in range(INVITATIONS_MAX):
        member_actions.add_member("team-a", email=f"n{number}@example.com", role="member", by=page(alice))
    with pytest.raises(Refused) as refused:
        member_actions.add_member("team-a", email="more@example.com", role="member", by=page(alice))
    assert (refused.value.code, refused.value.refusal.field) == ("too_many_invitations", "email")
    assert Event.objects.filter(verb="member.invited").count() == INVITATIONS_MAX
