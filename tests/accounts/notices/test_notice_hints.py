"""Open pages of a person are told that the number of unread notices changed: after the commit, in one message."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest

from accounts.core.actor import system_actor
from accounts.events.actions import deliver, record
from accounts.models import NoticeChannel, NoticeKind, NoticePreference, User
from accounts.notices.actions import mark_read
from portal.core import hints

pytestmark = pytest.mark.django_db
Committed = Callable[..., AbstractContextManager[list[Callable[[], None]]]]


def test_who_gets_a_notice_or_reads_it_is_told(
    alice: User, bob: User, dana: User, monkeypatch: pytest.MonkeyPatch, django_capture_on_commit_callbacks: Committed
) -> None:
    told: list[tuple[int, ...]] = []
    monkeypatch.setattr(hints, "_send_person_hints", told.append)
    NoticePreference.objects.create(user=dana, kind=NoticeKind.TEAM, channel=NoticeChannel.OFF)
    with django_capture_on_commit_callbacks(execute=True):
        event = record(system_actor("test"), "member.changed", bob)
        deliver(event, [alice, bob, dana], subject="News", body="News.", kind=NoticeKind.TEAM)
        assert told == [], "not before the commit"
    assert told == [(alice.pk, bob.pk)]
    with django_capture_on_commit_callbacks(execute=True):
        mark_read(bob.pk)
        mark_read(dana.pk)
    assert told[1:] == [(bob.pk,)]
