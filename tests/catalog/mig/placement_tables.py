"""Placement tables written by hand from NVIDIA's documentation, and layouts enumerated place by place. Nothing here
uses the portal's code.

Eight slices: `nvidia-smi mig -lgipp` on A100 and H100. A30: four slices. RTX PRO 6000: NVIDIA's MIG user guide, with
its numbers of decoders. Names: mig-parted v0.10.0, RTX PRO 6000 v0.15.0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product


@dataclass(frozen=True)
class Row:
    """`takes_ofa`: the instance has the only optical flow engine."""

    name: str
    size: int
    starts: tuple[int, ...]
    most: int
    decoders: int
    takes_ofa: bool


def eight(one: int, two: int, four: int, eight_gb: int, *, decoders: tuple[int, ...]) -> tuple[Row, ...]:
    d = decoders
    return (
        Row(f"1g.{one}gb", 1, (0, 1, 2, 3, 4, 5, 6), 7, d[0], False),
        Row(f"1g.{one}gb+me", 1, (0, 1, 2, 3, 4, 5, 6), 1, d[1], True),
        Row(f"1g.{two}gb", 2, (0, 2, 4, 6), 4, d[2], False),
        Row(f"2g.{two}gb", 2, (0, 2, 4), 3, d[3], False),
        Row(f"3g.{four}gb", 4, (0, 4), 2, d[4], False),
        Row(f"4g.{four}gb", 4, (0,), 1, d[5], False),
        Row(f"7g.{eight_gb}gb", 8, (0,), 1, d[6], True),
    )


AMPERE, HOPPER = (0, 1, 1, 1, 2, 2, 5), (1, 1, 1, 2, 3, 4, 7)

# Product: decoders of the GPU, its rows.
TABLES: dict[str, tuple[int, tuple[Row, ...]]] = {
    "A30": (
        4,
        (
            Row("1g.6gb", 1, (0, 1, 2, 3), 4, 0, False),
            Row("1g.6gb+me", 1, (0, 1, 2, 3), 1, 1, True),
            Row("2g.12gb", 2, (0, 2), 2, 2, False),
            Row("2g.12gb+me", 2, (0, 2), 1, 2, True),
            Row("4g.24gb", 4, (0,), 1, 4, True),
        ),
    ),
    "NVIDIA-A100-SXM4-40GB": (5, eight(5, 10, 20, 40, decoders=AMPERE)),
    "NVIDIA-A100-SXM4-80GB": (5, eight(10, 20, 40, 80, decoders=AMPERE)),
    "NVIDIA-H100-80GB-HBM3": (7, eight(10, 20, 40, 80, decoders=HOPPER)),
    "NVIDIA-H100-NVL": (7, eight(12, 24, 47, 94, decoders=HOPPER)),
    "NVIDIA-H200": (7, eight(18, 35, 71, 141, decoders=HOPPER)),
    "NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition": (
        4,
        (
            Row("1g.24gb", 1, (0, 1, 2, 3), 4, 1, False),
            Row("1g.24gb+gfx", 1, (0, 1, 2, 3), 4, 1, False),
            Row("1g.24gb+me", 1, (0, 1, 2, 3), 1, 1, True),
            Row("1g.24gb+me.all", 1, (0, 1, 2, 3), 1, 4, True),
            Row("1g.24gb-me", 1, (0, 1, 2, 3), 4, 0, False),
            Row("2g.48gb", 2, (0, 2), 2, 2, False),
            Row("2g.48gb+gfx", 2, (0, 2), 2, 2, False),
            Row("2g.48gb+me.all", 2, (0, 2), 1, 4, True),
            Row("2g.48gb-me", 2, (0, 2), 2, 0, False),
            Row("4g.96gb", 4, (0,), 1, 4, True),
            Row("4g.96gb+gfx", 4, (0,), 1, 4, True),
        ),
    ),
}

Placement = tuple[int, str]


def placements(product_name: str) -> Iterator[tuple[Placement, ...]]:
    """Tries, for each memory slice, every profile that may start there, and none; yields what the tables allow."""
    decoders, rows = TABLES[product_name]
    slices = max(row.size for row in rows)
    choices = [[None, *(row for row in rows if start in row.starts)] for start in range(slices)]
    for choice in product(*choices):
        placed = [(start, row) for start, row in enumerate(choice) if row is not None]
        held = [number for start, row in placed for number in range(start, start + row.size)]
        counts = Counter(row.name for _start, row in placed)
        if not placed or len(held) != len(set(held)):
            continue
        if any(counts[row.name] > row.most for row in rows):
            continue
        if sum(row.decoders for _start, row in placed) > decoders or sum(row.takes_ofa for _s, row in placed) > 1:
            continue
        yield tuple((start, row.name) for start, row in placed)
