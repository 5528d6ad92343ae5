"""Reads a person's notices and preferences."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from django.db.models import Count, QuerySet
from django.db.models.functions import Now

from accounts.events import kinds
from accounts.models import Notice, NoticeChannel, NoticeKind, NoticePreference

# The order of the list: the newest first.
KEYS = ("-at", "-id")


@dataclass(frozen=True)
class Preference:
    kind: NoticeKind
    label: str
    channel: NoticeChannel
    default: NoticeChannel
    may_change: bool


def notices_of(user_id: int, *, only_unread: bool = False) -> QuerySet[Notice]:
    """Without reminders that are not due yet."""
    found = Notice.objects.filter(user=user_id, at__lte=Now())
    return found.filter(read_at=None) if only_unread else found


def unread_count_of(user_id: int) -> QuerySet[Notice, int]:
    """One row with the number, to be a part of another query; no row for 0."""
    unread = notices_of(user_id, only_unread=True).order_by().values("user")
    found: QuerySet[Notice, int] = unread.annotate(number=Count("pk")).values_list("number", flat=True)
    return found


def unread_counts(user_ids: Collection[int]) -> dict[int, int]:
    """One query."""
    found = Notice.objects.filter(user__in=user_ids, at__lte=Now(), read_at=None).values_list("user")
    return dict.fromkeys(user_ids, 0) | dict(found.annotate(Count("pk")).order_by())


def preferences_of(user_id: int) -> list[Preference]:
    """Every kind, in the order of the page. One query."""
    chosen = dict(NoticePreference.objects.filter(user=user_id).values_list("kind", "channel"))
    found = []
    for kind in NoticeKind:
        default, may_change = kinds.DEFAULTS[kind], kind not in kinds.FIXED
        channel = NoticeChannel(chosen.get(kind, default)) if may_change else default
        found.append(Preference(kind, kind.label, channel, default, may_change))
    return found
