"""What was measured of an idle run, and what it costs, in words. Pure."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal

from portal.ui.text import plural, price_text
from usage.idle.models import IdleRun
from usage.idle.policy import NO_MEMORY_MIB
from usage.telemetry.types import BUSY_PERCENT

SECONDS_AN_HOUR = 3600
MIB_PER_GIB = 1024
CENT = Decimal("0.01")


def measured_text(row: IdleRun) -> str:
    """Every part of it is what was measured; what was not is said to be unknown."""
    mean = "" if row.activity_percent is None else f", mean {row.activity_percent:.1f} %"
    seen = f"{row.seen_minutes} of the last {plural(row.minutes, 'minute')} were measured"
    return f"{seen}, each with GPU activity below {BUSY_PERCENT:g} %{mean}; {memory_text(row)}"


def memory_text(row: IdleRun) -> str:
    """Whether its program has finished with the GPUs, or keeps its data there."""
    if row.memory_mib is None:
        return "GPU memory is unknown"
    if row.memory_mib < NO_MEMORY_MIB * row.units:
        return "no GPU memory is held: its program has finished with the GPUs, or has not begun"
    return f"{row.memory_mib / MIB_PER_GIB:.1f} GiB of GPU memory held"


def cost_an_hour(row: IdleRun) -> Decimal:
    return row.units * row.price_per_unit_hour


def cost_so_far(row: IdleRun, at: datetime) -> Decimal:
    """Of the units since the last activity."""
    seconds = Decimal(max(0, int((at - row.idle_since).total_seconds())))
    return (cost_an_hour(row) * seconds / SECONDS_AN_HOUR).quantize(CENT)


def cost_text(row: IdleRun, at: datetime) -> str:
    """`4 units cost 10.00 per hour, 12.50 since then`."""
    units, hourly = plural(row.units, "unit"), cost_an_hour(row)
    if not hourly:
        return f"{units}, free of charge"
    return f"{units} at {price_text(hourly)} per hour, {price_text(cost_so_far(row, at))} since then"
