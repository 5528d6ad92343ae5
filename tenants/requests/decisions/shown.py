"""What an approver sees of a request, as templates show it: lines, facts, the plan. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import date, datetime, timedelta
from typing import Any

from django.utils import timezone

from portal.core.errors import Refusal
from portal.ui.text import plural
from tenants.core.forms import end_of_day, start_of_day
from tenants.grants.types import Overcommit
from tenants.models import GRACE, QuotaLine
from tenants.requests.decisions.queries import ClassFigures, PastLine
from tenants.requests.queries import LineRow
from tenants.requests.shown import KIND_LABELS
from tenants.requests.usage_evidence import UsageEvidence

FITS = "Within the allocation limit for the whole period."


def line_context(row: LineRow, *, number: int, problem: str, error: str, typed: Mapping[str, Any]) -> dict[str, Any]:
    """`problem`: why it cannot be approved as requested, or ""."""
    fields = {name: getattr(row, name) for name in LineRow.__dataclass_fields__}
    return {
        **fields,
        "number": number,
        "kind": KIND_LABELS[row.kind],
        "is_boost": row.kind == QuotaLine.Kind.BOOST,
        "is_reclaim": row.is_reclaim,
        # Where quota is reduced, empty means the grace of the reduced grant.
        "grace_value": typed.get(f"grace-{row.pk}", "" if row.is_reclaim else GRACE // timedelta(hours=1)),
        "fits": "" if row.state != "pending" else problem or FITS,
        "fits_tone": "bad" if problem else "good",
        "units_value": typed.get(f"units-{row.pk}", row.asked_units),
        "from_value": typed.get(f"from-{row.pk}") or f"{timezone.localdate(row.asked_from):%Y-%m-%d}",
        "until_value": typed.get(f"until-{row.pk}") or f"{timezone.localdate(row.asked_until):%Y-%m-%d}",
        "errors": error,
    }


def edited_line(row: LineRow, typed: Mapping[str, str]) -> LineRow:
    """Returns the line with the units and dates in the form, for the same checks. What cannot be read stays."""
    units = typed.get(f"units-{row.pk}", "").strip()
    starts, ends = (_date(typed.get(f"{name}-{row.pk}", "")) for name in ("from", "until"))
    # A date that was not edited keeps the exact time that was requested.
    is_later = starts is not None and starts != timezone.localdate(row.asked_from)
    is_other_end = ends is not None and ends != timezone.localdate(row.asked_until)
    edited = replace(
        row,
        asked_units=int(units) if units.isascii() and units.isdigit() and len(units) < 7 else row.asked_units,
        asked_from=start_of_day(starts) if starts and is_later else row.asked_from,
        asked_until=end_of_day(ends) if ends and is_other_end else row.asked_until,
    )
    has_period = edited.asked_until > edited.asked_from
    return edited if has_period else replace(edited, asked_from=row.asked_from, asked_until=row.asked_until)


def _date(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def line_problem(excess: Overcommit | None, growth: Refusal | None, *, is_over: bool) -> str:
    """`growth`: refusal if the class gives no more units. `is_over`: the requested period ended before a decision."""
    if is_over:
        return "The requested period has ended. Choose a later end, or deny the request."
    if growth is not None:
        return growth.message
    return overcommit_sentence(excess) if excess else ""


def overcommit_sentence(excess: Overcommit) -> str:
    if excess.limit is None:
        return f"The capacity of {excess.class_name} is unknown: no current cluster data and no allocation limit."
    return f"{excess.class_name} would exceed its allocation limit of {excess.limit} by {excess.units}."


def facts_table(
    lines: Collection[LineRow], figures: Mapping[int, ClassFigures], measured: UsageEvidence
) -> dict[str, Any] | None:
    """Returns a table with one column per class and one row per fact."""
    columns = {row.gpu_class_id: row.name for row in lines}
    if not columns:
        return None
    found = [figures[pk] for pk in columns]

    def row(name: str, field: str) -> dict[str, Any]:
        values = [getattr(one, field) for one in found]
        return {"name": name, "values": ["unknown" if value is None else value for value in values]}

    rows = [
        row("Quota of this team", "held"),
        row("In use by this team", "used"),
        row("Allocated to teams", "promised"),
        row("Allocation limit", "limit"),
        row("Allocatable in the cluster", "allocatable"),
        row("In use by all teams", "in_use"),
        row("Free now", "free"),
    ]
    rows += [{"name": name, "values": [values[pk] for pk in columns]} for name, values in measured.rows]
    asked = {line.gpu_class_id: _cards(line, measured) for line in lines}
    rows.append({"name": "Requested, in physical GPUs", "values": [asked[pk] for pk in columns]})
    return {
        "columns": list(columns.values()),
        "rows": rows,
        "note": measured.note,
        "members": measured.members,
        "idle": measured.idle,
    }


def _cards(line: LineRow, measured: UsageEvidence) -> str:
    cards = measured.cards.get(line.gpu_class_id)
    if cards is None:
        return "–"
    gpus = cards * line.asked_units
    number = f"{float(gpus):.2f}".rstrip("0").rstrip(".")
    if line.kind == "boost":
        return f"+{number}"
    # Seven of 2g are two GPUs, but one GPU holds three of them: the rest of it is for other slices.
    holds = measured.units_per_card.get(line.gpu_class_id)
    least = -(-line.asked_units // holds) if holds else 0
    return f"{number}, on at least {least}" if least > 1 and least > gpus else number


def past_line(row: PastLine) -> dict[str, Any]:
    """Returns an earlier decided line, `A100, requested 8 GPUs in total`, and its decision."""
    wanted = plural(row.asked, row.unit) + (" as temporary increase" if row.kind == "boost" else " in total")
    sentence, given = f"requested {wanted}", "granted"
    if row.kind == QuotaLine.Kind.RECLAIM:
        sentence, given = f"proposed reduction to {plural(row.asked, row.unit)}", "reduced to"
    is_changed = row.units is not None and row.units != row.asked
    return {
        "pk": row.request_id,
        "sentence": f"{row.name}, {sentence}" + (f", {given} {row.units}" if is_changed else ""),
        "state": row.state,
        "at": row.at,
        "who": row.by,
        "reason": row.reason,
    }


def plan_context(
    objects: Collection[Mapping[str, Any]], *, made_at: datetime | None, error: str, is_pending: bool, is_observed: bool
) -> dict[str, Any]:
    """`is_pending`: a decision is still to be made. Afterwards the plan is a record of what the dry run said before.
    `is_observed`: it waits for the end of observe-only.
    """
    changed = [one for one in objects if one["change"] != "same" or one["result"] != "accepted"]
    same = len(objects) - len(changed)
    refused = sum(one["result"] == "refused" for one in objects)
    headline = f"{plural(len(changed), 'object')} would change" if changed else "no changes"
    if not is_pending:
        headline = f"{plural(len(changed), 'object')} to change" if changed else headline
    return {
        "is_pending": is_pending,
        "headline": headline + (f", {refused} rejected" if refused else ""),
        "made_at": made_at,
        "error": error,
        "is_observed": is_observed,
        "changed": [_planned(one) for one in changed],
        "unchanged": f"{plural(same, 'object')} unchanged." if same else "",
        "note": "For the units and dates as requested." if is_pending else "",
    }


def _planned(one: Mapping[str, Any]) -> dict[str, Any]:
    is_accepted = one["result"] == "accepted"
    words = {"create": "New, dry run accepted", "change": "Changes, dry run accepted", "delete": "Deleted"}
    return {
        "kind": one["kind"],
        "name": one["name"],
        "result": "applied" if is_accepted else "refused",
        "label": words.get(one["change"], "Unchanged") if is_accepted else "Dry run rejected",
        "detail": one["text"],
        "lines": [{"sign": text[:1], "text": text[2:]} for text in one["difference"]],
    }
