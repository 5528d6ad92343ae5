"""What a selection of requests would allocate together if all were approved as requested. It changes nothing."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction

from django.utils import timezone

from accounts.core.actor import Actor
from catalog.classes import queries as catalog
from desk.inbox.context import DecisionContext, decision_context
from desk.inbox.evidence import cards_per_unit
from portal.ui.text import plural
from tenants.approvers.policy import ApproverRights
from tenants.core import queries as core_queries
from tenants.grants import combined_promises
from tenants.grants.overcommit.queries import CURVE_AFTERWARDS, PromiseCurve
from tenants.grants.promises import ExcessInterval, Promise
from tenants.models import QuotaRequest
from tenants.requests import queries as request_queries


@dataclass(frozen=True)
class SelectedClass:
    """`more`: units beyond the totals in force where the lines start, also as physical GPUs if a unit is a part of one.
    `over`: by how much and when it exceeds its limit, or "". `is_unknown`: more is requested, and the limit is unknown.
    """

    curve: PromiseCurve
    more: str
    over: str
    is_unknown: bool


@dataclass(frozen=True)
class Selection:
    """`classes`: those over their limit first. `verdict`: whether the selection exceeds a limit, and when; `is_good`:
    it certainly does not. `left_out`: lines without a curve: of other approvers, of storage, or with a period that has
    ended.
    """

    count: int
    classes: tuple[SelectedClass, ...]
    verdict: str
    is_good: bool
    left_out: int


def selection_of(found: Collection[QuotaRequest], *, by: Actor, mine: ApproverRights) -> Selection:
    """Uses the lines that this user decides. About fifteen queries, whatever their number."""
    rows = request_queries.request_rows(found, by=by, mine=mine)
    at = core_queries.database_now()
    class_ids = {line.gpu_class_id for row in rows for line in row.to_decide if line.gpu_class_id}
    ground = decision_context(class_ids, {row.tenant.pk for row in rows}, at=at)
    changes: dict[int, list[Promise]] = defaultdict(list)
    more: Counter[int] = Counter()
    left_out = 0
    for row in rows:
        left_out += len(row.pending) - len(row.to_decide)
        for line in row.to_decide:
            promise = Promise(line.asked_units, line.asked_from, line.asked_until)
            holding = (row.tenant.pk, line.gpu_class_id)
            change = ground.change(holding, line.kind, promise) if line.gpu_class_id else None
            if change is None:
                left_out += 1
                continue
            changes[line.gpu_class_id].extend(change)
            more[line.gpu_class_id] += line.asked_units - ground.base(holding, line.kind, promise)
    # One time axis for all of them.
    end = max((one.end for parts in changes.values() for one in parts), default=at) + CURVE_AFTERWARDS
    found_classes = (_selected_class(pk, parts, more[pk], ground, end) for pk, parts in changes.items())
    classes = tuple(sorted(found_classes, key=lambda one: (not (one.over or one.is_unknown), one.curve.name)))
    verdict, is_good = _verdict(classes, is_one=len(rows) == 1)
    return Selection(len(rows), classes, verdict, is_good, left_out)


def _selected_class(
    pk: int, changes: list[Promise], more: int, ground: DecisionContext, end: datetime
) -> SelectedClass:
    one, at, limit, before = ground.classes[pk], ground.at, ground.limit(pk), ground.steps[pk]
    unit = catalog.unit_of(one)
    over = combined_promises.excess_intervals(before, changes, limit or 0)
    return SelectedClass(
        curve=PromiseCurve(
            name=one.name,
            unit=unit,
            before=tuple(combined_promises.curve_with(before, (), at, end)),
            after=tuple(combined_promises.curve_with(before, changes, at, end)),
            limit=limit,
            start=at,
            end=end,
        ),
        more=_more(more, unit, cards_per_unit(one)),
        over="" if limit is None else _over(over, one.name, limit),
        is_unknown=limit is None and bool(over),
    )


def _more(units: int, unit: str, cards: Fraction | None) -> str:
    if not units:
        return "no change"
    sign = "+" if units > 0 else "−"
    as_cards = "" if cards in (None, 1) else f", {plural(round(float(cards * abs(units)), 2), 'physical GPU')}"
    return f"{sign}{plural(abs(units), unit)}{as_cards}"


def _over(found: Collection[ExcessInterval], name: str, limit: int) -> str:
    """Returns the worst interval: `A100 by 4, 20 of 16, from 23 Nov 2026 to 4 Dec 2026`."""
    if not found:
        return ""
    worst = max(found, key=lambda excess: excess.units)
    start, end = timezone.localtime(worst.start), timezone.localtime(worst.end)
    return f"{name} by {worst.units}, {limit + worst.units} of {limit}, from {start:%-d %b %Y} to {end:%-d %b %Y}"


def _verdict(classes: Collection[SelectedClass], *, is_one: bool) -> tuple[str, bool]:
    if over := [one.over for one in classes if one.over]:
        return f"{'It exceeds' if is_one else 'Together they exceed'} an allocation limit: {'; '.join(over)}.", False
    if unknown := [one.curve.name for one in classes if one.is_unknown]:
        fit = "it fits" if is_one else "they fit together"
        return (
            f"Unknown whether {fit}: no current cluster data or no allocation limit for {', '.join(unknown)}.",
            False,
        )
    fits = f"{'It stays' if is_one else 'Together they stay'} within all allocation limits at all times."
    return (fits, True) if classes else ("", False)
