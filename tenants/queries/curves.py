"""What a decision does to the promises of a class over time: the approver's picture."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from catalog import queries as catalog
from catalog.models import GpuClass
from tenants import promises
from tenants.promises import Promise, Step
from tenants.queries import before_and_after

# The fall at the end of the asked period belongs to the picture.
AFTERWARDS = timedelta(days=7)


@dataclass(frozen=True)
class PromiseCurve:
    """Steps from `start` on, over all teams, as portal/promise_curve.py draws them. `limit` None: not known."""

    name: str
    unit: str
    before: tuple[Step, ...]
    after: tuple[Step, ...]
    limit: int | None
    start: datetime
    end: datetime


def promise_curve(
    tenant_id: int, gpu_class: GpuClass, promised: Promise, *, is_base: bool, limit: int | None, at: datetime
) -> PromiseCurve:
    """From now to a week after the promise's end. One query."""
    before, after = before_and_after(tenant_id, gpu_class, promised, is_base=is_base, at=at)
    end = promised.end + AFTERWARDS
    return PromiseCurve(
        name=gpu_class.name,
        unit=catalog.unit_of(gpu_class),
        before=tuple(promises.curve(before, at, end)),
        after=tuple(promises.curve(after, at, end)),
        limit=limit,
        start=at,
        end=end,
    )
