"""`record` and `deliver`. Every verb of every app ends with them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.core.serializers.json import DjangoJSONEncoder
from django.db import connection, models, transaction
from django.db.models.functions import Now

from accounts.core.actor import Actor
from accounts.events import kinds, queries
from accounts.models import Delivery, Event, Notice, NoticeChannel, NoticeKind, User
from portal.core import due
from portal.core.hints import person_hints, worker_hint

SUBJECT_MAX = 150
BODY_MAX = 4000
MORE = "\n\nThere are more messages on the portal's pages."


def record(
    by: Actor,
    verb: str,
    row: models.Model,
    *,
    tenant: str = "",
    before: Mapping[str, Any] | None = None,
    after: Mapping[str, Any] | None = None,
) -> Event:
    """Append an event. `verb` is `<noun>.<past participle>`; `before` and `after` contain only the changed fields.

    Call it in the transaction of the change, so that there is no event without its change and no change without its
    event.
    """
    if not connection.in_atomic_block:
        raise transaction.TransactionManagementError(f"record({verb!r}) outside of the transaction of its change")
    return Event.objects.create(
        actor_id=by.user_id,
        actor=by.name[:120],
        via=by.via[:40],
        verb=verb,
        tenant=tenant,
        row=queries.row_label(row),
        name=str(row)[:120],
        before=_plain(before or {}),
        after=_plain(after or {}),
        request_id=by.request_id,
    )


def deliver(
    event: Event,
    users: Iterable[User],
    *,
    subject: str,
    body: str,
    at: datetime | None = None,
    one_in: timedelta | None = None,
    kind: NoticeKind | None = None,
) -> None:
    """Notify users about an event, each once, in its transaction: a notice and an email, unless they prefer less for
    this kind. `at`: not earlier (for a reminder). `kind`: default: that of the event. A body about an object ends with
    the address of its page, which is also where the notice leads.

    `one_in`: at most one mail in this time to each user about this row; further texts wait and are sent together. And
    whatever a person does, each other person gets at most MAILS_AT_ONCE mails an hour from it, and then one an hour.
    """
    line = " ".join(subject.split())[:SUBJECT_MAX]
    told = {user.pk: user for user in users if user.is_active}
    kind = kind or kinds.kind_of(event.verb, event.after)
    channels = queries.channels_of(told, kind)
    _add_notices(event, kind, [pk for pk in told if channels[pk] != NoticeChannel.OFF], subject=line, body=body, at=at)
    recipients = {pk: user for pk, user in told.items() if channels[pk] == NoticeChannel.MAIL}
    waits = {} if at else queries.mail_waits(event, recipients, one_in=one_in)
    mails = []
    for user in recipients.values():
        until = waits.get(user.pk)
        if until is None or not _add_to_waiting(event, user, subject=line, body=body, is_of_row=until.is_of_row):
            due_at = at or (until.at if until else Now())
            mails.append(Delivery(event=event, user=user, subject=line, body=body[:BODY_MAX], due_at=due_at))
    Delivery.objects.bulk_create(mails)
    if len(waits) < len(recipients) and at is None:
        worker_hint(due.table_label(Delivery), queue=Delivery.queue)


def _add_notices(
    event: Event, kind: NoticeKind, user_ids: list[int], *, subject: str, body: str, at: datetime | None
) -> None:
    """Replaces unread notices of the same action of the same person on the same row, so that a person cannot fill the
    list of another, and removes those that were kept long enough.
    """
    if not user_ids:
        return
    queries.outdated_notices(event, user_ids, kind).delete()
    link = kinds.page_of(body, settings.PORTAL_URL)
    Notice.objects.bulk_create(
        Notice(user_id=pk, event=event, kind=kind, subject=subject, link=link, at=at or Now()) for pk in user_ids
    )
    person_hints(user_ids)


def _add_to_waiting(event: Event, user: User, *, subject: str, body: str, is_of_row: bool) -> bool:
    """Whether a mail to this user waits, so that the text could be added to it."""
    waiting = queries.waiting_mails(event, user, is_of_row=is_of_row).select_for_update(of=("self",)).first()
    if waiting is None:
        return False
    if waiting.subject != (together := f"Several messages from {event.actor}"[:SUBJECT_MAX]):
        waiting.body = f"{waiting.subject}\n\n{waiting.body}"
        waiting.subject = together
    if not waiting.body.endswith(MORE):
        longer = f"{waiting.body}\n\n{subject}\n\n{body}"
        waiting.body = longer if len(longer) <= BODY_MAX else waiting.body[: BODY_MAX - len(MORE)] + MORE
    waiting.save(update_fields=["subject", "body"])
    return True


def take_back(row: models.Model) -> None:
    """Removes mails about this row that were not sent, and notices whose time has not come. A mail that is being sent
    is not stopped. The verb of the event is one of `kinds.ALONE`.
    """
    of_row = {"event__row": queries.row_label(row)}
    is_free = models.Q(leased_until=None) | models.Q(leased_until__lte=Now())
    Delivery.objects.filter(is_free, **of_row, sent_at=None).delete()
    Notice.objects.filter(**of_row, at__gt=Now()).delete()


def deliver_to_address(event: Event, address: str, *, subject: str, body: str) -> None:
    """Notify a person who has no account yet."""
    line = " ".join(subject.split())[:150]
    Delivery.objects.create(event=event, address=address, subject=line, body=body[:4000])
    worker_hint(due.table_label(Delivery), queue=Delivery.queue)


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """Converts dates, decimals and choices to JSON values."""
    plain: dict[str, Any] = json.loads(json.dumps(values, cls=DjangoJSONEncoder))
    return plain
