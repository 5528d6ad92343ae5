"""A request while it is filled in: which classes have a line, and what each line would do before it is sent. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from catalog.classes.capacity.types import Capacity
from catalog.classes.queries import unit_of
from catalog.models import GpuClass
from portal.core.errors import Refusal
from portal.ui.text import plural, price_text
from tenants.grants.combined_promises import curve_with, promise_change
from tenants.grants.overcommit.queries import CURVE_AFTERWARDS, PromiseCurve, PromisedUnits, promise_of
from tenants.grants.promises import Promise
from tenants.models import Grant, QuotaLine
from tenants.requests.types import RequestedLine

ADD, REMOVE = "add", "remove"


@dataclass(frozen=True)
class LinePreview:
    """Sentences; "" where there is nothing to say. `change`: today's quota and the new one. `room`: how much can be
    granted without overcommit. `warning`: why this line is refused, or what an approver would have to exceed.
    """

    change: str = ""
    room: str = ""
    price: str = ""
    warning: str = ""
    curve: PromiseCurve | None = None


def has_line(values: Mapping[str, str], slug: str, look: str) -> bool:
    """`values`: of the form. `look`: what was pressed: one class is added or removed, and nothing is sent."""
    if look == f"{REMOVE} {slug}":
        return False
    is_added = look == ADD and values.get("class") == slug
    return is_added or f"units-{slug}" in values


def from_link(values: Mapping[str, str]) -> dict[str, str]:
    """A link may name one class that the person comes from, and its units: `?class=a100&units=4`. Other fields have the
    names that they have in the form.
    """
    slug = values.get("class", "")
    return {f"units-{slug}": values.get("units", ""), **values} if slug else dict(values)


def line_preview(
    gpu_class: GpuClass, asked: RequestedLine, refusal: Refusal | None, promised: PromisedUnits, capacity: Capacity
) -> LinePreview:
    """`refusal`: of the line as it is."""
    if refusal is not None:
        return LinePreview(warning=refusal.message)
    unit, limit, held = unit_of(gpu_class), capacity.limit(gpu_class), promised.held(gpu_class.pk)
    is_base = asked.kind != QuotaLine.Kind.BOOST
    wanted = Promise(asked.units, max(asked.starts, promised.at), asked.ends)
    excess = promised.excess(gpu_class, wanted, is_base=is_base, limit=limit) if limit is not None else None
    if is_base:
        added = sum(one.units for one in _increases(gpu_class, promised, wanted.start, wanted.start))
        total = asked.units + added
        change = f"{promised.base(gpu_class.pk)} → {plural(asked.units, unit)}"
        change += f", plus {added} of temporary increases" if added else ""
    else:
        total = held + asked.units
        change = f"{held} → {plural(total, unit)}, until the increase expires"
    return LinePreview(
        change=change,
        room=room_sentence(gpu_class, wanted, promised, limit, is_base=is_base),
        price=price_sentence(gpu_class, total, unit),
        warning=_excess_sentence(asked, excess.units, unit, limit or 0) if excess else "",
        curve=_curve(gpu_class, wanted, promised, limit, is_base=is_base),
    )


def room_sentence(
    gpu_class: GpuClass, wanted: Promise, promised: PromisedUnits, limit: int | None, *, is_base: bool
) -> str:
    """How much can be granted in this period. A new total replaces the team's own."""
    unit = unit_of(gpu_class)
    if limit is None:
        return "How much can be granted is unknown: the cluster was not read."
    change = promise_change(replace(wanted, units=0), replaced=_replaced(gpu_class, promised, is_base=is_base))
    taken = max(step.units for step in curve_with(promised.steps[gpu_class.pk], change, wanted.start, wanted.end))
    most = max(0, limit - taken)
    whose = "other teams" if is_base else "teams"
    if is_base and _increases(gpu_class, promised, wanted.start, wanted.end):
        whose = "other teams and your temporary increases"
    return (
        f"Up to {plural(most, unit)} {'in total' if is_base else 'more'} can be granted in this period: the allocation "
        f"limit is {limit}, of which {taken} are allocated to {whose}."
    )


def price_sentence(gpu_class: GpuClass, units: int, unit: str) -> str:
    price = gpu_class.price_per_unit_hour
    if not price or not units:
        return ""
    return f"Price {price_text(units * price)} per hour while all {plural(units, unit)} are in use."


def _excess_sentence(asked: RequestedLine, excess: int, unit: str, limit: int) -> str:
    return (
        f"{plural(asked.units, unit)} requested: this exceeds the allocation limit of {limit} by {excess}. You can "
        "submit it, but an approver has to deny it, approve fewer, or overcommit the class with a reason."
    )


def _increases(gpu_class: GpuClass, promised: PromisedUnits, start: datetime, end: datetime) -> list[Grant]:
    """The team's temporary increases that are in force at some time from `start` to `end`."""
    return [
        one
        for one in promised.own
        if one.gpu_class_id == gpu_class.pk
        and one.kind == Grant.Kind.BOOST
        and one.period.lower <= end
        and start < one.period.upper
    ]


def _replaced(gpu_class: GpuClass, promised: PromisedUnits, *, is_base: bool) -> list[Promise]:
    return [promise_of(one) for one in promised.bases(gpu_class.pk)] if is_base else []


def _curve(
    gpu_class: GpuClass, wanted: Promise, promised: PromisedUnits, limit: int | None, *, is_base: bool
) -> PromiseCurve:
    """As approvers see it: sums over all teams."""
    steps, end = promised.steps[gpu_class.pk], wanted.end + CURVE_AFTERWARDS
    change = promise_change(wanted, replaced=_replaced(gpu_class, promised, is_base=is_base))
    return PromiseCurve(
        name=gpu_class.name,
        unit=unit_of(gpu_class),
        before=tuple(curve_with(steps, (), promised.at, end)),
        after=tuple(curve_with(steps, change, promised.at, end)),
        limit=limit,
        start=promised.at,
        end=end,
    )
