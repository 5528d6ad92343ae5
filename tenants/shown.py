"""Rows as templates show them: words around numbers. Pure; what is allowed and what is true was decided before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from accounts.models import Event
from accounts.sentences import sentence
from catalog.models import GpuClass
from catalog.queries import Capacity
from cluster import status
from cluster.models import AppliedObject
from portal.errors import Refusal
from portal.quota_bar import plural
from tenants.measured import Measured
from tenants.models import GRACE, Namespace, QuotaLine
from tenants.policy import Excess
from tenants.queries import Figures
from tenants.queries.asks import Ask
from tenants.queries.requests import LineRow, RequestRow

FITS = "Fits: at no time in the period more would be promised than there is."
VERBS = {
    "request.filed": "filed the request",
    "request.reclaimed": "asked to take quota back",
    "request.withdrawn": "withdrew what was pending",
    "request.decided": "decided",
    "request.commented": "commented",
    "request.asked_back": "asked back",
}


KINDS: dict[str, str] = {
    QuotaLine.Kind.BASE: "new total",
    QuotaLine.Kind.BOOST: "boost",
    QuotaLine.Kind.RECLAIM: "taking back",
}


def asked(line: LineRow) -> str:
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
        "lines": [{"name": line.name, "asked": asked(line), "state": line.state} for line in row.lines],
    }


def line(row: LineRow, *, number: int, problem: str, error: str, typed: Mapping[str, Any]) -> dict[str, Any]:
    """`problem`: why it cannot be approved as it was asked, or ""."""
    fields = {name: getattr(row, name) for name in LineRow.__dataclass_fields__}
    return {
        **fields,
        "number": number,
        "kind": KINDS[row.kind],
        "is_reclaim": row.is_reclaim,
        # Where units are taken back, empty means as the grant that is cut states.
        "grace_value": typed.get(f"grace-{row.pk}", "" if row.is_reclaim else GRACE // timedelta(hours=1)),
        "fits": "" if row.state != "pending" else problem or FITS,
        "fits_tone": "bad" if problem else "good",
        "units_value": typed.get(f"units-{row.pk}", row.asked_units),
        "from_value": typed.get(f"from-{row.pk}") or f"{timezone.localdate(row.asked_from):%Y-%m-%d}",
        "until_value": typed.get(f"until-{row.pk}") or f"{timezone.localdate(row.asked_until):%Y-%m-%d}",
        "errors": error,
    }


def problem(excess: Excess | None, growth: Refusal | None, *, is_over: bool) -> str:
    """`growth`: the class gives no more. `is_over`: the asked period ended before anybody decided."""
    if is_over:
        return "The period that was asked for is over; choose a later end, or deny it."
    if growth is not None:
        return growth.message
    return over_promised(excess) if excess else ""


def over_promised(excess: Excess) -> str:
    if excess.limit is None:
        return f"What {excess.class_name} can give is not known at the moment: no data from the cluster, no limit set."
    return (
        f"{excess.class_name} would be promised {excess.units} more than the {excess.limit} it can give at that time."
    )


def facts(lines: Collection[LineRow], figures: Mapping[int, Figures], measured: Measured) -> dict[str, Any] | None:
    """A table: one column a class, one row a fact."""
    columns = {row.gpu_class_id: row.name for row in lines}
    if not columns:
        return None
    found = [figures[pk] for pk in columns]

    def row(name: str, field: str) -> dict[str, Any]:
        values = [getattr(one, field) for one in found]
        return {"name": name, "values": ["unknown" if value is None else value for value in values]}

    rows = [
        row("In force for this team", "held"),
        row("Used by this team now", "used"),
        row("Promised to all teams", "promised"),
        row("May be promised", "limit"),
        row("Allocatable in the cluster", "allocatable"),
        row("In use by everybody now", "in_use"),
        row("Free this minute", "free"),
    ]
    rows += [{"name": name, "values": [values[pk] for pk in columns]} for name, values in measured.rows]
    asked = {line.gpu_class_id: _cards(line, measured) for line in lines}
    rows.append({"name": "Asked as physical cards", "values": [asked[pk] for pk in columns]})
    return {
        "columns": list(columns.values()),
        "rows": rows,
        "note": measured.note,
        "members": measured.members,
    }


def _cards(line: LineRow, measured: Measured) -> str:
    cards = measured.cards.get(line.gpu_class_id)
    if cards is None:
        return "–"
    number = f"{float(cards * line.asked_units):.2f}".rstrip("0").rstrip(".")
    return f"+{number}" if line.kind == "boost" else number


def ask(row: Ask) -> dict[str, Any]:
    """One that was decided before: `A100, asked for 8 cards in all`, and what came of it."""
    wanted = plural(row.asked, row.unit) + (" on top" if row.kind == "boost" else " in all")
    sentence, given = f"asked for {wanted}", "given"
    if row.kind == QuotaLine.Kind.RECLAIM:
        sentence, given = f"to be taken back down to {plural(row.asked, row.unit)}", "left"
    is_changed = row.units is not None and row.units != row.asked
    return {
        "pk": row.request_id,
        "sentence": f"{row.name}, {sentence}" + (f", {given} {row.units}" if is_changed else ""),
        "state": row.state,
        "at": row.at,
        "who": row.by,
        "reason": row.reason,
    }


def plan(objects: Collection[Mapping[str, Any]], *, made_at: datetime | None, error: str) -> dict[str, Any]:
    changed = [one for one in objects if one["change"] != "same" or one["result"] != "accepted"]
    same = len(objects) - len(changed)
    refused = sum(one["result"] == "refused" for one in objects)
    headline = f"{plural(len(changed), 'object')} would change" if changed else "nothing would change"
    return {
        "headline": headline + (f", {refused} refused" if refused else ""),
        "made_at": made_at,
        "error": error,
        "changed": [_planned(one) for one in changed],
        "unchanged": f"{plural(same, 'object')} would stay as now." if same else "",
        "note": "",
    }


def _planned(one: Mapping[str, Any]) -> dict[str, Any]:
    is_accepted = one["result"] == "accepted"
    words = {"create": "New, dry run accepted", "change": "Changes, dry run accepted", "delete": "Goes away"}
    return {
        "kind": one["kind"],
        "name": one["name"],
        "result": "applied" if is_accepted else "refused",
        "label": words.get(one["change"], "Unchanged") if is_accepted else "Dry run refused",
        "detail": one["text"],
        "lines": [{"sign": text[:1], "text": text[2:]} for text in one["difference"]],
    }


def result_of(row: AppliedObject, absent: Collection[int] = ()) -> str:
    return status.word(row, absent)


def applied_object(row: AppliedObject, absent: Collection[int] = ()) -> dict[str, Any]:
    """For components/_objects.html. `absent`: see cluster/status.py."""
    result = result_of(row, absent)
    shown: dict[str, Any] = {
        "kind": row.kind,
        "name": row.name,
        "result": result,
        "label": "",
        "detail": status.sentence(row, absent),
        "at": row.sent_at,
        "raw": row.text if result == "refused" else "",
    }
    if result == "terminating":
        shown |= {"result": "stopping", "label": "Terminating"}
    return shown


def unsent_object(kind: str, name: str) -> dict[str, Any]:
    text = "It was not sent yet; what comes before it has to be in the cluster first."
    return {"kind": kind, "name": name, "result": "missing", "label": "", "detail": text, "at": None, "raw": ""}


def namespace(
    row: Namespace,
    objects: Collection[AppliedObject],
    absent: Collection[int] = (),
    unsent: Collection[tuple[str, str, str]] = (),
) -> dict[str, Any]:
    """`absent`: see cluster/status.py; `unsent`: see queries/objects.py."""
    return {
        "name": row.name,
        "wanted": row.wanted,
        "cluster": row.cluster.name,
        "settled": row.observed_generation >= row.generation,
        "error_text": row.error_text,
        "applied_as_of": row.applied_as_of,
        "objects": [
            *(applied_object(one, absent) for one in objects),
            *(unsent_object(kind, name) for kind, _namespace, name in unsent),
        ],
        "counts": ", ".join(filter(None, [counts(objects, absent), f"{len(unsent)} not sent" if unsent else ""])),
    }


def event(found: Event) -> dict[str, Any]:
    """For components/_events.html."""
    return {"at": found.at, "who": found.actor, "sentence": VERBS.get(found.verb, found.verb), "name": "", "href": ""}


def account_event(found: Event) -> dict[str, Any]:
    """The same, with what was given or taken: `set the roles of Dana: approver`."""
    told = [value for key, value in (found.after or found.before).items() if key in ("roles", "class", "because")]
    what = "; ".join(", ".join(value) or "none" if isinstance(value, list) else str(value) for value in told)
    text = f"{sentence(found.verb)} {found.name}" if found.name != found.actor else sentence(found.verb)
    return {"at": found.at, "who": found.actor, "sentence": f"{text}: {what}" if what else text}


def counts(rows: Collection[AppliedObject], absent: Collection[int] = ()) -> str:
    """`14 applied, 1 refused`."""
    found = Counter(result_of(row, absent) for row in rows)
    return ", ".join(f"{found[word]} {word}" for word in status.WORDS if found[word])


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
