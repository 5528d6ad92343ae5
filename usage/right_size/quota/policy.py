"""What a team used of a class in a month → a smaller total that would have been enough. Pure.

What counts is what was in use at once, because that is what a quota limits: units that were held and not busy are the
subject of the advice about a workload. It is suggested only if the team could have used more all the time and did not.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from portal.ui.text import plural
from tenants.grants.promises import Step
from usage.right_size.quota.types import HeldActivity, QuotaUse, SmallerTotal

# Of the present total: one unit less of many is not worth a request.
ROOM_PERCENT = 90
# Of the time, and of what was held.
SEEN_PERCENT = 80
# What was measured nearly all the time needs no note.
SEEN_ALL = 0.98
MOMENT = timedelta(seconds=1)


def smaller_total(use: QuotaUse) -> SmallerTotal | None:
    if use.peak is None or 100 * use.seen_share < SEEN_PERCENT:
        return None
    if use.is_waiting or not use.may_request or use.total_min < use.total:
        return None
    if 100 * use.peak > ROOM_PERCENT * use.total or use.peak >= use.total:
        return None
    why = _why(use, use.peak)
    return SmallerTotal(use.gpu_class, use.class_name, use.unit, use.total, use.peak, use.until, why)


def least_units(steps: Sequence[Step], until: datetime) -> int:
    """The fewest units that were in force for longer than a moment: a grant ends with the last instant of its day, and
    the next one starts with the next day.
    """
    ends = [*(step.at for step in steps[1:]), until]
    return min(step.units for step, end in zip(steps, ends, strict=True) if end - step.at > MOMENT)


def _why(use: QuotaUse, peak: int) -> str:
    total = plural(use.total, use.unit)
    if not peak:
        said = f"In {use.days} days none of {total} was in use."
    else:
        busy = _busy(use.activity, peak)
        said = f"In {use.days} days at most {peak} of {total} {_was(peak)} in use at the same time{busy}."
    if use.seen_share < SEEN_ALL:
        said += f" Use was measured during {_percent(use.seen_share)} % of that time."
    return said


def _busy(activity: HeldActivity | None, peak: int) -> str:
    """Nothing if too little was measured: what was not may have been busy."""
    if activity is None or 100 * activity.seen_share < SEEN_PERCENT:
        return ""
    most = min(peak, activity.busy_units_max)
    said = f", and at most {most} of them {_was(most)} busy"
    if activity.seen_share < SEEN_ALL:
        said += f" (activity was measured during {_percent(activity.seen_share)} % of what was held)"
    return said


def _was(units: int) -> str:
    return "was" if units == 1 else "were"


def _percent(share: float) -> int:
    return int(100 * share)
