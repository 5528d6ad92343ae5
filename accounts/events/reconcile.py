"""Reconciles one Delivery: sends the email, stamps the row. At least once: after a crash, the email is sent again with
the same Message-ID.
"""

from __future__ import annotations

from smtplib import SMTPException, SMTPRecipientsRefused
from urllib.parse import urlsplit

from django.conf import settings
from django.core.mail import EmailMessage
from django.db.models.functions import Now

from accounts.models import Delivery
from portal.core import due
from portal.core.plain_text import visible


def reconcile(delivery: Delivery, deadline: due.Deadline) -> due.Outcome:
    if delivery.sent_at is not None or (delivery.user is not None and not delivery.user.is_active):
        return due.DONE
    deadline.check()
    try:
        message_for(delivery).send()
    except SMTPRecipientsRefused as error:
        raise due.TryLater("address_refused", "The email server rejected this address.") from error
    except (SMTPException, OSError) as error:
        text = f"The email server failed ({type(error).__name__}). Delivery is retried later."
        raise due.TryLater("mail_unavailable", text) from error
    Delivery.objects.filter(pk=delivery.pk, sent_at=None).update(sent_at=Now())
    return due.DONE


def message_for(delivery: Delivery) -> EmailMessage:
    host = urlsplit(settings.PORTAL_URL).hostname or "localhost"
    return EmailMessage(
        subject=visible(delivery.subject),
        body=f"{visible(delivery.body)}\n\n-- \nGPU portal, {settings.PORTAL_URL}\n",
        to=[delivery.user.email if delivery.user else delivery.address],
        headers={"Message-ID": f"<delivery-{delivery.pk}@{host}>", "Auto-Submitted": "auto-generated"},
    )
