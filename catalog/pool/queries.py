"""Nodes whose units the quota still counts although they do not offer them now, for pages and the API."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import F
from django.utils import timezone

from catalog.classes import queries as class_queries
from catalog.models import GpuClass, NodeUnits
from portal.ui.text import NAMES_SHOWN, plural, time_or_date


@dataclass(frozen=True)
class DelayedFall:
    """`reported` of `counted` units since `since`; the quota falls at `until`. `message`: the sentence for pages."""

    node: str
    reported: int
    counted: int
    since: datetime
    until: datetime
    message: str


def delayed_falls(classes: Collection[GpuClass]) -> dict[int, list[DelayedFall]]:
    """By class id, the earliest first; a class without any is left out. One query."""
    known = {one.pk: one for one in classes}
    now = timezone.now()
    found: dict[int, list[DelayedFall]] = {}
    rows = NodeUnits.objects.filter(gpu_class__in=known, counted__gt=F("reported")).order_by("since", "node")
    for row in rows:
        found.setdefault(row.gpu_class_id, []).append(_fall(row, known[row.gpu_class_id], now))
    return found


def fall_sentences(falls: Collection[DelayedFall]) -> list[str]:
    """At most three, and how many nodes more."""
    shown = [one.message for one in falls][:NAMES_SHOWN]
    more = len(falls) - len(shown)
    return [*shown, f"The same applies to {plural(more, 'other node')}."] if more else shown


def _fall(row: NodeUnits, one: GpuClass, now: datetime) -> DelayedFall:
    until = row.since + timedelta(minutes=one.damping_minutes)
    when = f"at {time_or_date(until, now=now)}" if until > now else "soon"
    since = time_or_date(row.since, now=now)
    units = plural(row.counted, class_queries.unit_of(one))
    message = f"Node {row.node} reports {row.reported} of {units} since {since}; quota is reduced {when}."
    return DelayedFall(row.node, row.reported, row.counted, row.since, until, message)
