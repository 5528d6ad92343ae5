"""What a launch would meet now, in words: each case beside a neighbour that must differ."""

from __future__ import annotations

from dataclasses import replace

import pytest

from portal.errors import Refusal
from workloads.outlook import BAD, GOOD, WAIT, Figures, sentence

FIGURES = Figures(unit="card", granted=4, used=1, queued=0, borrowing_limit=0, on_one_node=3)
USED_UP = replace(FIGURES, used=4)
LATER = replace(FIGURES, granted=0, used=0)
BORROWED = "may be borrowed while others leave them idle, and are taken back when they need them"


@pytest.mark.parametrize(
    ("figures", "words", "tone"),
    [
        (FIGURES, "uses 2 of 4; 3 free now on one node; starts at once", GOOD),
        (replace(FIGURES, on_one_node=0), "uses 2 of 4; no node has a card free now; waits until one has", WAIT),
        (
            replace(FIGURES, on_one_node=None),
            "uses 2 of 4; what is free is not known, the cluster was not read",
            WAIT,
        ),
        (USED_UP, "your 4 granted are in use; waits until something of yours ends", WAIT),
        (
            replace(USED_UP, queued=2),
            "your 4 granted are in use; waits behind 2 cards of yours until something of yours ends",
            WAIT,
        ),
        (replace(USED_UP, borrowing_limit=2), f"your 4 granted are in use; up to 2 more {BORROWED}", WAIT),
        (LATER, "nothing is in force yet; starts when your grant begins", WAIT),
        (
            replace(FIGURES, held="A100 is held since 09:10 for a driver update; expected to open at 14:00."),
            "A100 is held since 09:10 for a driver update; expected to open at 14:00. "
            "What you launch waits until it opens.",
            WAIT,
        ),
        (replace(FIGURES, leaving="A100 is being retired."), "A100 is being retired. Nothing new starts on it.", BAD),
        (replace(LATER, borrowing_limit=2), f"nothing of your own is in force; up to 2 {BORROWED}", WAIT),
    ],
)
def test_what_a_launch_would_meet(figures: Figures, words: str, tone: str) -> None:
    assert sentence(figures, None) == (words, tone)


def test_what_can_never_start_says_why() -> None:
    assert sentence(FIGURES, Refusal("class_not_active", "A100 is retired.")) == ("A100 is retired.", BAD)
