"""Kills each operation before and after each of its writes, which are enumerated from a recording.

Another process then finishes the operation; the end state equals that of an undisturbed operation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tests.faults.crashes.stage import Stage, Strike
from tests.faults.crashes.state import differences
from tests.faults.crashes.types import MOMENTS, Moment


@dataclass(frozen=True)
class Deaths:
    """`points`: crash points of the recording. `died`: how many were tried and killed the process. A write that depends
    on the pace of the cluster may not happen again: `missed`.
    """

    points: int
    died: int
    missed: tuple[str, ...]
    wrong: tuple[str, ...]


def killed_everywhere(stage: Stage, name: str, *, every: int = 1, moments: Sequence[Moment] = MOMENTS) -> Deaths:
    """`every`: one point in so many."""
    recorded = stage.case(name)
    points = [(write, moment) for write in recorded.writes for moment in moments]
    died, missed, wrong = 0, [], []
    for write, moment in points[::every]:
        outcome = stage.case(name, strike=Strike(write, f"kill {moment}"))
        if outcome.is_hit:
            died += 1
        else:
            missed.append(f"{moment} {write}")
        wrong += [f"{moment} {write}: {line}" for line in differences(outcome.state, recorded.state)]
    return Deaths(len(points), died, tuple(missed), tuple(wrong))
