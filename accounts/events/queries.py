"""Reads about events: those visible to an actor, of a team, of a row."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Count, Max, Model, Q, QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from accounts.core.actor import Actor
from accounts.events import kinds
from accounts.models import Delivery, Event, Notice, NoticeKind, NoticePreference, User
from portal.core.sql import select

# What one person may cause in the mailbox of another: this many mails an hour, and then one an hour.
MAILS_AT_ONCE = 10
MAIL_INTERVAL = timedelta(hours=1)
NOTICES_KEPT = timedelta(days=90)


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


def undelivered_mails() -> QuerySet[Delivery]:
    """Mails whose last attempt failed."""
    return Delivery.objects.filter(sent_at=None).exclude(error_code="")


def events_of_tenant(slug: str) -> QuerySet[Event]:
    return Event.objects.filter(tenant=slug).order_by("-id")


def latest_events(tenant: str, at_most: int) -> list[Event]:
    """A team's events, newest first. SQL text, because every rendering of the team's page reads them."""
    return select(Event, "tenant = %s ORDER BY id DESC LIMIT %s", [tenant, at_most])


def events_of_row(row: Model) -> QuerySet[Event]:
    """Newest first. The row may be deleted already: its events are kept."""
    return Event.objects.filter(row=row_label(row)).order_by("-id")


@dataclass(frozen=True)
class MailWait:
    """Until when a mail has to wait. `is_of_row`: because of a mail about the same row."""

    at: datetime
    is_of_row: bool


def mail_waits(event: Event, user_ids: Collection[int], *, one_in: timedelta | None) -> dict[int, MailWait]:
    """Which of these users have already got as many mails as this person may cause. One query; none for the portal
    itself and for users who notify themselves.
    """
    others = [pk for pk in user_ids if pk != event.actor_id]
    if event.actor_id is None or not others:
        return {}
    of_row = Q(event__row=event.row, event__verb=event.verb)
    now = timezone.now()
    since = now - max(MAIL_INTERVAL, one_in or MAIL_INTERVAL)
    mails = Delivery.objects.filter(user__in=others, event__actor_id=event.actor_id, event__at__gt=since)
    counted = mails.values("user").annotate(
        number=Count("pk", filter=Q(event__at__gt=now - MAIL_INTERVAL)),
        latest=Max("event__at"),
        latest_of_row=Max("event__at", filter=of_row),
    )
    found = {}
    for row in counted:
        if one_in and row["latest_of_row"] and row["latest_of_row"] > now - one_in:
            found[row["user"]] = MailWait(row["latest_of_row"] + one_in, is_of_row=True)
        if row["number"] >= MAILS_AT_ONCE:
            found[row["user"]] = MailWait(row["latest"] + MAIL_INTERVAL, is_of_row=False)
    return found


def channels_of(user_ids: Collection[int], kind: NoticeKind) -> dict[int, str]:
    """How each of these users is notified of this kind. One query; none if people cannot choose."""
    found = dict.fromkeys(user_ids, str(kinds.DEFAULTS[kind]))
    if found and kind not in kinds.FIXED:
        chosen = NoticePreference.objects.filter(kind=kind, user__in=found)
        found.update(chosen.values_list("user", "channel"))
    return found


def outdated_notices(event: Event, user_ids: Collection[int], kind: NoticeKind) -> QuerySet[Notice]:
    """Notices of these users that are older than NOTICES_KEPT, or unread and replaced by this event.

    The events are a subquery and not a join: a plan that PostgreSQL made while both tables were small, and kept, would
    compare each notice with each event.
    """
    same = Event.objects.filter(actor_id=event.actor_id, row=event.row, verb=event.verb)
    replaced = Q(kind=kind, read_at=None, event__in=same)
    return Notice.objects.filter(replaced | Q(at__lt=timezone.now() - NOTICES_KEPT), user__in=user_ids)


def waiting_mails(event: Event, user: User, *, is_of_row: bool) -> QuerySet[Delivery]:
    """Mails of the same person to this user that no worker has begun to send, to which this event's text may be added;
    `is_of_row`: about the same row.
    """
    if event.verb in kinds.ALONE:
        return Delivery.objects.none()
    found = Delivery.objects.filter(
        user=user, event__actor_id=event.actor_id, sent_at=None, leased_until=None, due_at__gt=Now()
    )
    found = found.exclude(event__verb__in=kinds.ALONE)
    return (found.filter(event__row=event.row) if is_of_row else found).order_by("pk")


def row_label(row: Model) -> str:
    """`<app>.<model>.<pk>`: the name of a row in events."""
    return f"{row._meta.label_lower}.{row.pk}"
