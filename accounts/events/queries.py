"""Reads about events: those visible to an actor, of a team, of a row."""

from __future__ import annotations

from collections.abc import Collection

from django.db.models import Model, Q, QuerySet

from accounts.core.actor import Actor
from accounts.models import Event
from portal.core.sql import select


def events_for(by: Actor, *, tenants: Collection[str] | QuerySet) -> QuerySet[Event]:
    """The events that `by` may see, newest first: those of these teams and the user's own; all events for staff. A
    team's token does not show what its owner does outside the team.

    `tenants`: the slugs of the actor's teams, passed in because this app knows teams by name only.
    """
    found = Event.objects.order_by("-id")
    if by.user is None or by.sees_all:
        return found
    theirs = Q(tenant__in=tenants)
    return found.filter(theirs if by.confined_to else theirs | Q(actor_id=by.user_id))


def events_of_tenant(slug: str) -> QuerySet[Event]:
    return Event.objects.filter(tenant=slug).order_by("-id")


def latest_events(tenant: str, at_most: int) -> list[Event]:
    """A team's events, newest first. SQL text, because every rendering of the team's page reads them."""
    return select(Event, "tenant = %s ORDER BY id DESC LIMIT %s", [tenant, at_most])


def events_of_row(row: Model) -> QuerySet[Event]:
    """Newest first. The row may be deleted already: its events are kept."""
    return Event.objects.filter(row=row_label(row)).order_by("-id")


def row_label(row: Model) -> str:
    """`<app>.<model>.<pk>`: the name of a row in events."""
    return f"{row._meta.label_lower}.{row.pk}"
