"""The events of signing in and out."""

from __future__ import annotations

from django.db import transaction

from accounts.core.actor import Actor
from accounts.events.actions import deliver, record
from accounts.models import Event
from accounts.people import queries as people_queries


@transaction.atomic
def signed_in(*, by: Actor, address: str = "", second_factor: str = "", issuer: str = "") -> Event:
    """Records the event; Django stores the session. Sign-ins of the break-glass account are reported to all admins."""
    how = {"second_factor": second_factor, "issuer": issuer}
    after = {"address": address} | {name: value for name, value in how.items() if value}
    if not by.person.is_superuser:
        return record(by, "account.signed_in", by.person, after=after)
    event = record(by, "account.glass_broken", by.person, after=after)
    text = f"{by.name} ({by.person.email}) signed in from {address}. If this was not planned, suspend the account."
    deliver(event, people_queries.active_administrators(), subject="The break-glass account was used", body=text)
    return event


@transaction.atomic
def signed_out(*, by: Actor) -> Event:
    return record(by, "account.signed_out", by.person)
