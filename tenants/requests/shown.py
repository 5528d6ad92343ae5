"""Requests as lists show them: texts around numbers. Pure."""

from __future__ import annotations

from typing import Any

from accounts.models import Event
from catalog.classes.capacity.types import Capacity
from catalog.models import GpuClass
from portal.ui.text import plural
from tenants.models import QuotaLine
from tenants.requests.queries import LineRow, RequestRow

EVENT_TEXTS = {
    "request.filed": "filed the request",
    "request.reclaimed": "asked to take quota back",
    "request.withdrawn": "withdrew what was pending",
    "request.decided": "decided",
    "request.commented": "commented",
    "request.asked_back": "asked back",
}


KIND_LABELS: dict[str, str] = {
    QuotaLine.Kind.BASE: "new total",
    QuotaLine.Kind.BOOST: "boost",
    QuotaLine.Kind.RECLAIM: "taking back",
}


def requested_units(line: LineRow) -> str:
    """`4 → 8 cards`, `+2 cards` for a boost, or `down to 3 cards` of a total, which boosts stay on top of."""
    if line.is_reclaim:
        return f"down to {plural(line.asked_units, line.unit)}"
    if line.kind == "boost":
        return f"+{plural(line.asked_units, line.unit)}"
    return f"{line.held} → {plural(line.asked_units, line.unit)}"


def request_row(row: RequestRow) -> dict[str, Any]:
    return {
        "pk": row.pk,
        "tenant": row.tenant,
        "who": row.filed_by,
        "filed_at": row.filed_at,
        "state": row.state,
        "is_asked_back": row.is_asked_back,
        "overdue_since": row.overdue_since,
        "refusal": row.refusal,
        "lines": [{"name": line.name, "asked": requested_units(line), "state": line.state} for line in row.lines],
    }


def request_event(found: Event) -> dict[str, Any]:
    """For components/data/_events.html."""
    return {
        "at": found.at,
        "who": found.actor,
        "sentence": EVENT_TEXTS.get(found.verb, found.verb),
        "name": "",
        "href": "",
    }


def class_note(one: GpuClass, capacity: Capacity, promised: int) -> str:
    """`shared; 12 of 32 free; 28 promised of 32`, or `for volumes; 200 promised of 1000 GiB`."""
    if one.is_storage:
        return (
            f"for volumes; {promised} promised of {'unknown' if one.promise_limit is None else one.promise_limit} GiB"
        )
    kind = "exclusive" if one.sharing == GpuClass.Sharing.NONE else f"shared by {one.replicas}"
    limit = capacity.allocatable if one.promise_limit is None else one.promise_limit
    free = "free units unknown" if capacity.free is None else f"{capacity.free} of {capacity.allocatable} free"
    return f"{kind}; {free}; {promised} promised of {'unknown' if limit is None else limit}"
