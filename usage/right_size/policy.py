"""What was measured of a workload in two weeks → a smaller or a larger size. Pure.

A smaller size is suggested only from enough days, from the most that was used and never from a mean, and with room to
spare. The figures of shared GPUs are of all who share them: nothing follows from them. AMD's partitions and cards are
not compared, because a partition divides memory and compute in another way than a MIG slice.
"""

from __future__ import annotations

from collections.abc import Iterable

from portal.ui.text import plural
from usage.right_size.types import MeasuredUse, SizeAdvice, UnitSize

DAYS_LEAST, HOURS_LEAST = 7, 24
# Of the memory of the smaller unit, and of its part of the GPU's compute.
ROOM_PERCENT = 90
FULL_PERCENT = 97.0


def advise(use: MeasuredUse, own: UnitSize, others: Iterable[UnitSize]) -> SizeAdvice | None:
    """`others`: classes that the team may use."""
    if use.is_shared or use.days < DAYS_LEAST or use.hours < HOURS_LEAST:
        return None
    of_same_gpu = [one for one in others if one.product == own.product and one.slug != own.slug]
    if use.memory_percent_max is not None and use.memory_percent_max >= FULL_PERCENT:
        return _larger(use, own, of_same_gpu) if own.is_slice else None
    if use.units > 1 and use.busy_units_max < use.units:
        return _fewer(use, own)
    return _smaller(use, own, of_same_gpu) if use.units == 1 else None


def _fewer(use: MeasuredUse, own: UnitSize) -> SizeAdvice:
    """One that was never busy still needs one unit."""
    units = max(1, use.busy_units_max)
    why = f"At most {use.busy_units_max} of {plural(use.units, 'GPU')} were busy at the same time {_on_days(use)}."
    return SizeAdvice(f"Use {plural(units, 'GPU')}", why, own.slug, units)


def _smaller(use: MeasuredUse, own: UnitSize, others: list[UnitSize]) -> SizeAdvice | None:
    if use.memory_mib_max is None or own.memory_mib is None:
        return None
    # The busiest minute of a large unit says how many small ones would have been busy all the time.
    needed = own.share * use.activity_percent_max / 100
    fitting = [
        one
        for one in others
        if one.is_slice
        and one.share < own.share
        and one.memory_mib is not None
        and use.memory_mib_max <= one.memory_mib * ROOM_PERCENT / 100
        and needed <= one.share * ROOM_PERCENT / 100
    ]
    if not fitting:
        return None
    best = min(fitting, key=lambda one: (one.share, one.memory_mib or 0, one.slug))
    why = (
        f"It used at most {_gib(use.memory_mib_max)} of {_gib(own.memory_mib)} GPU memory, and at most "
        f"{use.activity_percent_max:.0f} % of its GPU in a minute, {_on_days(use)}. {best.name} has "
        f"{_gib(best.memory_mib or 0)}{_free(best)}."
    )
    return _another(best, 1, why)


def _larger(use: MeasuredUse, own: UnitSize, others: list[UnitSize]) -> SizeAdvice | None:
    more = [one for one in others if (one.memory_mib or 0) > (own.memory_mib or 0) and own.memory_mib is not None]
    if not more:
        return None
    best = min(more, key=lambda one: (one.memory_mib or 0, one.share, one.slug))
    why = (
        f"Its GPU memory was {use.memory_percent_max:.0f} % full {_on_days(use)}: it may fail when it needs more. "
        f"{best.name} has {_gib(best.memory_mib or 0)}{_free(best)}."
    )
    return _another(best, use.units, why)


def _another(one: UnitSize, units: int, why: str) -> SizeAdvice:
    """Of another class, for which the team may have no quota."""
    needs_quota = one.usable_units < units
    if needs_quota:
        less = f"can use at most {one.usable_units} of" if one.usable_units else "has no quota for"
        why = f"{why} The team {less} {one.name}."
    return SizeAdvice(f"Use {one.name}", why, one.slug, units, needs_quota=needs_quota)


def _free(one: UnitSize) -> str:
    return "" if one.free_units is None else f"; {one.free_units} are free now"


def _on_days(use: MeasuredUse) -> str:
    return f"on {use.days} days, in {use.hours:.0f} measured hours"


def _gib(mib: float) -> str:
    return f"{mib / 1024:.1f} GiB" if mib < 10 * 1024 else f"{mib / 1024:.0f} GiB"
