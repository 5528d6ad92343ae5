"""Which people have a request open, shown to others who could decide it. Only a hint, so it is in Redis, not in a row.

Rows record decisions, and opening a page decides nothing: a row would mean a write at every page view, kept in backups
long after the five minutes for which it is useful. Losing it with Redis costs nothing: if two people decide at the same
moment, the second still gets the refusal that it is already decided.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import redis
import structlog
from django.utils import timezone

from accounts.models import User
from portal.core.hints import redis_connection

log = structlog.get_logger(__name__)

FORGOTTEN_AFTER = timedelta(minutes=5)
# A user who reloads the page every second causes one write a minute.
WRITTEN_EVERY = timedelta(minutes=1)


@dataclass(frozen=True)
class OpenViewer:
    name: str
    since: datetime


def mark_request_open(request_id: int, who: User) -> None:
    """Records that `who` has the request open and may decide it. Two round trips at most."""
    now = timezone.now()
    field = str(who.pk)
    try:
        found = _read(redis_connection().hget(_key(request_id), field))
        if found and now - found[1] < WRITTEN_EVERY:
            return
        since = found[0] if found and now - found[1] < FORGOTTEN_AFTER else now
        with redis_connection().pipeline() as pipe:
            pipe.hset(_key(request_id), field, f"{since.timestamp()} {now.timestamp()} {who.name}")
            pipe.expire(_key(request_id), FORGOTTEN_AFTER)
            pipe.execute()
    except redis.RedisError as error:
        log.warning("hint_lost", hint=f"open {request_id}", error=type(error).__name__)


def viewers_of_requests(request_ids: Collection[int], who: User) -> dict[int, list[OpenViewer]]:
    """By request, longest viewer first; requests that no other person has open are left out. One round trip."""
    now = timezone.now()
    pks = list(request_ids)
    try:
        with redis_connection().pipeline(transaction=False) as pipe:
            for pk in pks:
                pipe.hgetall(_key(pk))
            answers = pipe.execute() if pks else []
    except redis.RedisError as error:
        log.warning("hint_lost", hint="open", error=type(error).__name__)
        return {}
    found: dict[int, list[OpenViewer]] = {}
    for pk, fields in zip(pks, answers, strict=True):
        others = [_read(value) for field, value in fields.items() if int(field) != who.pk]
        theirs = [OpenViewer(one[2], one[0]) for one in others if one and now - one[1] < FORGOTTEN_AFTER]
        if theirs:
            found[pk] = sorted(theirs, key=lambda one: one.since)
    return found


def _key(request_id: int) -> str:
    return f"open:request:{request_id}"


def _read(value: bytes | str | None) -> tuple[datetime, datetime, str] | None:
    """Returns when the viewer opened it, when the viewer was last seen, and the viewer's name."""
    if value is None:
        return None
    since, last, name = (value if isinstance(value, str) else value.decode()).split(" ", 2)
    return datetime.fromtimestamp(float(since), UTC), datetime.fromtimestamp(float(last), UTC), name
