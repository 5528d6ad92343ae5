"""The geometry of a quota bar: numbers in, rectangles in percent out. No template computes anything.

A bar shows one class for one team: used (solid), borrowed (hatched), granted but unused (track), the lent part of the
unused (a band below), queued (dashed), and a mark at the quota limit. Up to CELLS units, one cell is one unit; above,
the bar is continuous.
"""

from __future__ import annotations

from dataclasses import dataclass

from portal.ui.text import plural, plural_form

CELLS = 16
SMALLEST_SCALE = 8  # so that a grant of one GPU does not fill the bar


@dataclass(frozen=True)
class BarSpan:
    x: float
    width: float


@dataclass(frozen=True)
class QuotaBar:
    track: BarSpan
    used: BarSpan
    borrowed: BarSpan
    lent: BarSpan
    queued: BarSpan
    cuts: tuple[float, ...]
    mark: float
    sentence: str


def quota_sentence(*, granted: float, used: float | None, borrowed: float, queued: float, unit: str) -> str:
    if used is None:
        return f"{plural(granted, unit)} granted; usage unknown"
    own = used - borrowed
    text = f"{own:g} of {granted:g} granted {plural_form(unit)} used, {borrowed:g} borrowed, {queued:g} queued"
    return f"{plural(used, unit)} used: {text}" if borrowed else text


def quota_bar(
    *,
    granted: float,
    used: float | None,
    borrowed: float | None = 0,
    queued: float | None = 0,
    unit: str = "unit",
    lent: float = 0,
    lent_words: str = "",
) -> QuotaBar:
    """Geometry in percent of the bar's width. `used` includes `borrowed`; each bar of a page has its own scale. None:
    the value is unknown and not drawn. `lent`: its maximum, drawn at the end of the granted units.
    """
    borrowed, queued = borrowed or 0, queued or 0
    own = max(0.0, (used or 0) - borrowed)
    held = max(granted, own)  # after a grant was lowered, use may exceed it: drawn beyond the mark
    filled = held + borrowed
    # queued units would take the team's own free units first, so they are drawn over these
    queue_from = filled if borrowed else own
    scale = max(SMALLEST_SCALE, filled, queue_from + queued)

    def percent(units: float) -> float:
        return round(100 * units / scale, 3)

    def span(start: float, units: float) -> BarSpan:
        return BarSpan(percent(start), percent(units))

    cells = scale <= CELLS
    last = int(filled)
    return QuotaBar(
        track=span(0, held),
        used=span(0, own),
        borrowed=span(held, borrowed),
        lent=span(held - lent, lent),
        queued=span(queue_from, queued),
        cuts=tuple(percent(unit_number) for unit_number in range(1, last) if unit_number != granted) if cells else (),
        mark=percent(granted),
        sentence=quota_sentence(granted=granted, used=used, borrowed=borrowed, queued=queued, unit=unit)
        + (f", {lent_words} lent" if lent_words else ""),
    )
