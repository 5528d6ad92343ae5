"""Announce, change the end, withdraw, acknowledge."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime

from django.conf import settings
from django.db import transaction
from django.db.backends.postgresql.psycopg_any import DateTimeTZRange

from accounts.core.actor import Actor
from accounts.events.actions import deliver, record, take_back
from catalog.classes import queries as class_queries
from catalog.models import GpuClass
from portal.core.errors import get_or_refuse, refuse, refuse_if
from portal.core.hints import person_hints
from tenants.announcements import policy as announcement_policy
from tenants.announcements import queries
from tenants.core import policy
from tenants.core import queries as core_queries
from tenants.models import Acknowledgement, Announcement, Tenant


@transaction.atomic
def announce(
    *,
    title: str,
    body: str,
    severity: str,
    audience: str,
    classes: Collection[str],
    teams: Collection[str],
    starts: datetime,
    ends: datetime,
    wants_acknowledgement: bool,
    by: Actor,
) -> Announcement:
    """`classes`, `teams`: their slugs. Raises Refused: not_allowed (403), bad_announcement, bad_period, unknown_class,
    unknown_team (422).
    """
    refuse_if(policy.may_operate(by))
    title, body = " ".join(title.split()), body.strip()
    refuse_if(announcement_policy.text_refusal(title, body))
    refuse_if(announcement_policy.audience_refusal(audience, classes=len(classes), teams=len(teams)))
    now = core_queries.database_now()
    refuse_if(announcement_policy.announced_period_refusal(starts, ends, now=now))
    found_classes = list(GpuClass.objects.filter(slug__in=classes))
    found_teams = list(Tenant.objects.filter(slug__in=teams))
    if len({one.slug for one in found_classes}) != len(set(classes)):
        raise refuse("unknown_class", "One of these classes does not exist. See the catalog.", field="classes")
    if len(found_teams) != len(set(teams)):
        raise refuse("unknown_team", "One of these teams does not exist.", field="teams")
    row = Announcement.objects.create(
        title=title,
        body=body,
        severity=severity,
        audience=audience,
        period=DateTimeTZRange(starts, ends),
        wants_acknowledgement=wants_acknowledgement,
        created_by=by.person,
    )
    row.classes.set(found_classes)
    row.teams.set(found_teams)
    # Without its text: events are read by people outside of the audience.
    event = record(by, "announcement.made", row, after={"severity": severity, "from": starts, "until": ends})
    deliver(
        event,
        queries.people_reached(row),
        subject=f"{row.get_severity_display().capitalize()}: {title}",
        body=announcement_policy.mail_text(
            body, _migration_texts(found_classes), f"{settings.PORTAL_URL}/announcements/{row.pk}"
        ),
        at=starts if starts > now else None,
    )
    _hint_pages(row)
    return row


@transaction.atomic
def change_end(pk: int, *, ends: datetime, by: Actor) -> Announcement:
    """Its text never changes, because people have read it. The same end again changes nothing.

    Raises Refused: not_allowed (403), not_found (404), is_over (409), bad_period (422).
    """
    row, now = _open_announcement(pk, by)
    starts, before = row.period.lower, row.period.upper
    refuse_if(announcement_policy.announced_period_refusal(starts, ends, now=now))
    if ends == before:
        return row
    row.period = DateTimeTZRange(starts, ends)
    row.save(update_fields=["period"])
    record(by, "announcement.changed", row, before={"until": before}, after={"until": ends})
    _hint_pages(row)
    return row


@transaction.atomic
def withdraw_announcement(pk: int, *, by: Actor) -> Announcement:
    """It vanishes from every page at once, and who was not told yet is not told.

    Raises Refused: not_allowed (403), not_found (404), is_over (409).
    """
    row, now = _open_announcement(pk, by)
    row.withdrawn_at = now
    row.save(update_fields=["withdrawn_at"])
    take_back(row)
    record(by, "announcement.withdrawn", row)
    _hint_pages(row)
    return row


@transaction.atomic
def acknowledge(pk: int, *, by: Actor) -> Acknowledgement:
    """Hides it from this person. Repeating it changes nothing. Raises Refused: not_found (404), also for one that is
    not in force, is not for this person or wants no acknowledgement.
    """
    rows = queries.announcements_for(by.person.pk).filter(wants_acknowledgement=True)
    row = get_or_refuse(rows, pk=pk)
    done, is_new = Acknowledgement.objects.get_or_create(announcement=row, user=by.person)
    if is_new:
        done.refresh_from_db(fields=["at"])
        record(by, "announcement.acknowledged", row)
        person_hints([by.person.pk])
    return done


def _open_announcement(pk: int, by: Actor) -> tuple[Announcement, datetime]:
    """Locked, and the time. Raises Refused: not_allowed (403), not_found (404), is_over (409)."""
    refuse_if(policy.may_operate(by))
    row = get_or_refuse(Announcement.objects.select_for_update(), pk=pk)
    now = core_queries.database_now()
    refuse_if(announcement_policy.change_refusal(is_over=queries.is_over(row, at=now)))
    return row, now


def _hint_pages(row: Announcement) -> None:
    """Open pages look again at once. The begin and the end of its period have no hint: pages see them by the clock."""
    person_hints(list(queries.people_reached(row).values_list("pk", flat=True)))


def _migration_texts(classes: Iterable[GpuClass]) -> list[str]:
    """For the mail, which people of several teams read: what to do instead of each class that is being retired."""
    found = [one for one in map(class_queries.migration_of, classes) if one and one.advice]
    addresses = (f"{settings.PORTAL_URL}/catalog/{one.successor or one.gpu_class}" for one in found)
    return [f"{one.name}: {one.advice}\n{address}" for one, address in zip(found, addresses, strict=True)]
