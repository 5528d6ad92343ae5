"""Requests as lists show them: numbers as text. Pure."""

from __future__ import annotations

from typing import Any

from accounts.events.texts import verb_text
from accounts.models import Event
from catalog.classes import queries as class_queries
from catalog.classes.capacity.types import Capacity
from catalog.models import GpuClass
from portal.ui.text import plural
from tenants.models import QuotaLine
from tenants.requests.queries import LineRow, RequestRow

EVENT_TEXTS = {
    "request.filed": "submitted the request",
    "request.reclaimed": "proposed to reduce quota",
    "request.withdrawn": "withdrew all pending lines",
    "request.commented": "commented",
    "request.asked_back": "requested information",
}


KIND_LABELS: dict[str, str] = {
    QuotaLine.Kind.BASE: "new total",
    QuotaLine.Kind.BOOST: "temporary increase",
    QuotaLine.Kind.RECLAIM: "quota reduction",
}


def requested_units(line: LineRow) -> str:
    """`4 → 8 GPUs`, also after the decision; `+2 GPUs` for a temporary increase, `reduced to 3 GPUs` for a total."""
    if line.is_reclaim:
        return f"reduced to {plural(line.asked_units, line.unit)}"
    if line.kind == "boost":
        return f"+{plural(line.asked_units, line.unit)}"
    asked = plural(line.asked_units, line.unit)
    return asked if line.replaced is None else f"{line.replaced} → {asked}"


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
        "sentence": EVENT_TEXTS.get(found.verb) or verb_text(found.verb, found.after),
        "name": "",
        "href": "",
    }


def class_note(one: GpuClass, capacity: Capacity, promised: int) -> str:
    """`time-sliced ×4; 12 of 32 free; 28 of 32 allocated to teams`, or `for volumes; 200 of 1000 GiB …`."""
    if one.is_storage:
        storage_limit = "unknown" if one.promise_limit is None else one.promise_limit
        return f"for volumes; {promised} of {storage_limit} GiB allocated to teams"
    limit = capacity.limit(one)
    free = "free: unknown" if capacity.free is None else f"{capacity.free} of {capacity.allocatable} free"
    kind = class_queries.sharing_of(one)
    return f"{kind}; {free}; {promised} of {'unknown' if limit is None else limit} allocated to teams"
