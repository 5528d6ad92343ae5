"""Who gets a notice and an email of an announcement: exactly its audience, once, when its period begins."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import transaction
from django.utils import timezone

from accounts.core.actor import Actor
from accounts.events.actions import deliver, record
from accounts.events.queries import MAILS_AT_ONCE
from accounts.models import Delivery, Notice, NoticeChannel, NoticeKind, NoticePreference, User
from tenants.announcements import actions
from tenants.models import Tenant
from tests.tenants.announcements.test_announcements import announced

pytestmark = pytest.mark.django_db


def mailed() -> list[str]:
    return sorted(Delivery.objects.values_list("user__name", flat=True))


def noticed() -> list[str]:
    return sorted(Notice.objects.values_list("user__name", flat=True))


def test_exactly_the_audience_is_told_once(team_a: Tenant, olga: User, charlie: User) -> None:
    row = announced(olga, audience="teams", teams=["team-a"], title="Tonight", body="Save your work.")
    assert mailed() == noticed() == ["Alice", "Bob"]
    mail = Delivery.objects.filter(user__name="Bob").get()
    assert mail.subject == "Warning: Tonight"
    assert mail.body.startswith("Save your work.")
    notice = Notice.objects.filter(user__name="Bob").get()
    assert (notice.kind, notice.link) == (NoticeKind.ANNOUNCED, f"/announcements/{row.pk}")


def test_people_who_left_or_cannot_sign_in_are_not_told(team_a: Tenant, olga: User, alice: User) -> None:
    User.objects.filter(pk=alice.pk).update(is_active=False)
    announced(olga, audience="teams", teams=["team-a"])
    assert mailed() == noticed() == ["Bob"]


def test_who_wants_no_mail_gets_a_notice(team_a: Tenant, olga: User, bob: User) -> None:
    NoticePreference.objects.create(user=bob, kind=NoticeKind.ANNOUNCED, channel=NoticeChannel.PAGE)
    announced(olga, audience="teams", teams=["team-a"])
    assert (mailed(), noticed()) == (["Alice"], ["Alice", "Bob"])


def test_what_begins_later_is_told_later(team_a: Tenant, olga: User) -> None:
    starts = timezone.now() + timedelta(days=2)
    announced(olga, audience="teams", teams=["team-a"], starts=starts, ends=starts + timedelta(days=1))
    assert set(Delivery.objects.values_list("due_at", flat=True)) == {starts}
    assert set(Notice.objects.values_list("at", flat=True)) == {starts}


def test_who_was_not_told_is_not_told_of_what_was_withdrawn(team_a: Tenant, olga: User, bob: User) -> None:
    starts = timezone.now() + timedelta(days=2)
    row = announced(olga, audience="teams", teams=["team-a"], starts=starts, ends=starts + timedelta(days=1))
    other = announced(olga, audience="teams", teams=["team-a"], title="Another")
    Delivery.objects.filter(user=bob, subject__endswith="Another").update(sent_at=timezone.now())
    for one in (row, other):
        actions.withdraw_announcement(one.pk, by=Actor(olga, via="page"))
    assert [(mail.user, mail.sent_at is not None) for mail in Delivery.objects.select_related("user")] == [(bob, True)]
    assert noticed() == ["Alice", "Bob"], "those of what had begun stay in the list"


def test_other_mails_are_not_lost_with_it(team_a: Tenant, olga: User, bob: User) -> None:
    """Past the number of mails that a person may cause in an hour, texts are added to mails that wait."""
    starts = timezone.now() + timedelta(days=2)
    row = announced(olga, audience="teams", teams=["team-a"], starts=starts, ends=starts + timedelta(days=1))
    by = Actor(olga, via="page")
    for number in range(MAILS_AT_ONCE + 3):
        with transaction.atomic():
            deliver(record(by, "team.renamed", team_a), [bob], subject=f"Other {number}", body="Read this.")
    late = announced(olga, audience="teams", teams=["team-a"], title="Late")
    for one in (row, late):
        actions.withdraw_announcement(one.pk, by=by)
    texts = "\n".join(f"{mail.subject} {mail.body}" for mail in Delivery.objects.filter(user=bob))
    assert all(f"Other {number}" in texts for number in range(MAILS_AT_ONCE + 3))
    assert "Late" not in texts
    assert "Save your work." not in texts


def test_the_mail_of_a_worker_that_died_goes_with_it(team_a: Tenant, olga: User) -> None:
    row = announced(olga, audience="teams", teams=["team-a"])
    Delivery.objects.update(leased_until=timezone.now() - timedelta(seconds=1))
    actions.withdraw_announcement(row.pk, by=Actor(olga, via="page"))
    assert mailed() == []


def test_a_mail_that_is_being_sent_is_not_stopped(team_a: Tenant, olga: User) -> None:
    row = announced(olga, audience="teams", teams=["team-a"])
    Delivery.objects.update(leased_until=timezone.now() + timedelta(minutes=1))
    actions.withdraw_announcement(row.pk, by=Actor(olga, via="page"))
    assert mailed() == ["Alice", "Bob"]
