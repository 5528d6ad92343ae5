"""Events as server-sent events, in the order of their ids, for programs that resume after the last id they have.

Ids are given before commit, so an event may become visible after one with a higher id. A stream therefore sends an
event only when all lower ids are settled: committed, or never to come. Then the id of the last event is all that a
program has to keep.
"""

from __future__ import annotations

import random
from collections.abc import Collection
from dataclasses import dataclass

from django.db import connection
from rest_framework.renderers import JSONRenderer

from accounts.core.actor import Actor
from accounts.events.queries import events_for
from accounts.events.serializers import EventSerializer
from accounts.models import Event
from portal.core.errors import NOT_FOUND, Refused, refuse

PAGE = 200
# Another time for each stream, so that all that end with a process do not return at once.
RETRY_MS = (2_000, 12_000)
CONTENT_TYPE = "text/event-stream; charset=utf-8"
_WRITERS = """
SELECT virtualtransaction FROM pg_locks
 WHERE locktype = 'relation' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
   AND relation = %s::regclass AND mode = 'RowExclusiveLock' AND pid <> pg_backend_pid()"""


@dataclass(frozen=True)
class EventPage:
    """`last`: everything up to this id that the reader may see has been sent. `is_full`: there may be more."""

    text: bytes
    last: int
    is_full: bool = False


@dataclass(frozen=True)
class EventReader:
    """Who reads, which teams they see now, and the one that they asked for (""  for all)."""

    by: Actor
    teams: Collection[str]
    team: str = ""

    def page(self, *, after: int, until: int) -> EventPage:
        """The next events, oldest first; `until` is a settled id. Raises Refused (404) for another team."""
        if self.team and self.team not in self.teams:
            raise Refused(NOT_FOUND)
        found = events_for(self.by, tenants=self.teams).filter(id__gt=after, id__lte=until).order_by("id")
        rows = list((found.filter(tenant=self.team) if self.team else found)[:PAGE])
        is_full = len(rows) == PAGE
        return EventPage(
            b"".join(event_text(row) for row in rows), rows[-1].pk if is_full else max(after, until), is_full
        )


def event_text(event: Event) -> bytes:
    """JSON has no line breaks, so it is one `data:` line."""
    data = JSONRenderer().render(EventSerializer(event).data)
    return b"id: %d\nevent: event\ndata: %b\n\n" % (event.pk, data)


def position_text(last: int) -> bytes:
    """For a program that reconnects before its first event: an id without data is kept, but not shown as an event."""
    return b"retry: %d\nid: %d\n\n" % (random.randint(*RETRY_MS), last)


def newest_id() -> int:
    return Event.objects.order_by("-id").values_list("id", flat=True).first() or 0


def unfinished_writers() -> frozenset[str]:
    """The other transactions that have added events and have not ended. They hold the lock from before they get an id
    until their events are visible: when those found after `newest_id()` have ended, all ids up to it are settled.
    """
    with connection.cursor() as cursor:
        cursor.execute(_WRITERS, [Event._meta.db_table])
        return frozenset(one for (one,) in cursor.fetchall())


def teams_with_events(*, after: int, until: int) -> set[str]:
    return set(Event.objects.filter(id__gt=after, id__lte=until).values_list("tenant", flat=True).distinct())


def position_asked(text: str) -> int | None:
    """The id after which to begin, None for now. Raises Refused: invalid (422)."""
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise refuse("invalid", "'after' is the id of an event, a whole number.", field="after")
    if int(text) > newest_id():
        told = "There is no event with this id yet. Leave out 'after' to begin with the next event."
        raise refuse("invalid", told, field="after")
    return int(text)
