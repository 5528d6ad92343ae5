"""`record` and `deliver`. Every verb of every app ends with them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from django.core.serializers.json import DjangoJSONEncoder
from django.db import connection, models, transaction
from django.db.models.functions import Now

from accounts.core.actor import Actor
from accounts.events import queries
from accounts.models import Delivery, Event, User
from portal.core import due
from portal.core.hints import worker_hint


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


def deliver(event: Event, users: Iterable[User], *, subject: str, body: str, at: datetime | None = None) -> None:
    """Notify users about an event, each once, in its transaction. `at`: send it not earlier (for a reminder)."""
    line = " ".join(subject.split())[:150]
    recipients = {user.pk: user for user in users if user.is_active}
    Delivery.objects.bulk_create(
        [
            Delivery(event=event, user=user, subject=line, body=body[:4000], due_at=at or Now())
            for user in recipients.values()
        ]
    )
    if recipients and at is None:
        worker_hint(due.table_label(Delivery), queue=Delivery.queue)


def deliver_to_address(event: Event, address: str, *, subject: str, body: str) -> None:
    """Notify a person who has no account yet."""
    line = " ".join(subject.split())[:150]
    Delivery.objects.create(event=event, address=address, subject=line, body=body[:4000])
    worker_hint(due.table_label(Delivery), queue=Delivery.queue)


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """Converts dates, decimals and choices to JSON values."""
    plain: dict[str, Any] = json.loads(json.dumps(values, cls=DjangoJSONEncoder))
    return plain
