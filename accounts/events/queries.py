"""Reads about events: what somebody may know, of a team, of a row."""

from __future__ import annotations

from collections.abc import Collection

from django.db.models import Model, Q, QuerySet

from accounts.core.actor import Actor
from accounts.models import Event
from portal.core.sql import select


def events_for(by: Actor, *, tenants: Collection[str] | QuerySet) -> QuerySet[Event]:
    """What `by` may know: events of these tenants and their own; everything for staff. Newest first. To a team's token
    its maker's other doings are nothing.

    `tenants`: the slugs of their teams, handed in because this app knows teams by name only.
    """
    found = Event.objects.order_by("-id")
    if by.user is None or by.sees_all:
        return found
    theirs = Q(tenant__in=tenants)
    return found.filter(theirs if by.confined_to else theirs | Q(actor_id=by.user_id))


def events_of_tenant(slug: str) -> QuerySet[Event]:
    return Event.objects.filter(tenant=slug).order_by("-id")


def latest_events(tenant: str, at_most: int) -> list[Event]:
    """Of a tenant, newest first. As text: every rendering of its page asks this."""
    return select(Event, "tenant = %s ORDER BY id DESC LIMIT %s", [tenant, at_most])


def events_of_row(row: Model) -> QuerySet[Event]:
    """Newest first. The row may be gone: events outlive what they are about."""
    return Event.objects.filter(row=row_label(row)).order_by("-id")


def row_label(row: Model) -> str:
    """`<app>.<model>.<pk>`: how events name a row."""
    return f"{row._meta.label_lower}.{row.pk}"
