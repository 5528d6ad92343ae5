"""Email is sent by a Due row: lost tasks, a failing mail server and crashes lose no message."""

from __future__ import annotations

import smtplib
from collections.abc import Sequence
from typing import Any

import pytest
from django.conf import LazySettings
from django.core import mail
from django.core.mail.backends.base import BaseEmailBackend
from django.db.models.functions import Now

from accounts import tasks
from accounts.core.actor import system_actor
from accounts.events import actions
from accounts.models import Delivery, User
from portal.core import due


class FailingBackend(BaseEmailBackend):
    """The only test double of the suite: a mail server that refuses."""

    error: Exception = smtplib.SMTPServerDisconnected()

    def send_messages(self, messages: Sequence[Any]) -> int:
        raise self.error


@pytest.fixture
def delivery(alice: User) -> Delivery:
    event = actions.record(system_actor("test"), "quota.approved", alice)
    actions.deliver(event, [alice], subject="4 A100 approved", body="Until 31 January.")
    return Delivery.objects.get()


def test_a_delivery_is_sent_once_and_rests(delivery: Delivery) -> None:
    tasks.deliver()
    tasks.deliver()

    [message] = mail.outbox
    assert (message.to, message.subject) == (["alice@example.org"], "4 A100 approved")
    assert message.body.startswith("Until 31 January.")
    assert message.extra_headers["Message-ID"] == f"<delivery-{delivery.pk}@localhost>"
    delivery.refresh_from_db()
    assert delivery.sent_at is not None
    assert (delivery.due_at, delivery.error_code) == (None, "")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (smtplib.SMTPServerDisconnected("gone"), "mail_unavailable"),
        (TimeoutError(), "mail_unavailable"),
        (ConnectionRefusedError(), "mail_unavailable"),
        (smtplib.SMTPRecipientsRefused({"alice@example.org": (550, b"no such user")}), "address_refused"),
    ],
)
def test_a_mail_server_that_refuses_is_tried_again(
    delivery: Delivery, settings: LazySettings, error: Exception, code: str
) -> None:
    settings.EMAIL_BACKEND = "tests.accounts.events.test_delivery.FailingBackend"
    FailingBackend.error = error
    tasks.deliver()

    delivery.refresh_from_db()
    assert (delivery.sent_at, delivery.attempts, delivery.error_code) == (None, 1, code)
    assert delivery.due_at is not None

    settings.EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
    Delivery.objects.update(due_at=Now())
    tasks.deliver()

    delivery.refresh_from_db()
    assert (len(mail.outbox), delivery.error_code, delivery.due_at) == (1, "", None)


def test_who_was_suspended_meanwhile_gets_nothing(delivery: Delivery, alice: User) -> None:
    User.objects.filter(pk=alice.pk).update(is_active=False)

    tasks.deliver()

    delivery.refresh_from_db()
    assert (mail.outbox, delivery.sent_at, delivery.due_at) == ([], None, None)


def test_the_sweep_finds_a_delivery_whose_hint_was_lost(delivery: Delivery) -> None:
    assert "accounts.delivery" in due.sweep()
