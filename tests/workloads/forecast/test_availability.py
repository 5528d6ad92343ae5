"""What a launch would meet now, in words: each case beside a neighbour that must differ."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from itertools import combinations_with_replacement, product

import pytest

from catalog.classes.capacity import weights
from portal.core.errors import Refusal
from workloads.forecast.availability import BAD, GOOD, WAIT, AvailabilityFigures, availability_sentence, cost

FIGURES = AvailabilityFigures(unit="GPU", granted=4, used=1, borrowing_limit=0, on_one_node=3)
USED_UP = replace(FIGURES, used=4)
LATER = replace(FIGURES, granted=0, used=0)
BORROWED = "can be borrowed while other teams do not use them, and are reclaimed when those teams need them"


@pytest.mark.parametrize(
    ("figures", "units", "words", "tone"),
    [
        (FIGURES, 1, "uses 2 of 4 GPUs; 3 free now on one node; starts now", GOOD),
        (FIGURES, 3, "uses 4 of 4 GPUs; 3 free now on one node; starts now", GOOD),
        # Queued runs are served first, wherever their units are.
        (
            replace(FIGURES, waiting=(1,), ahead=1),
            2,
            "uses 4 of 4 GPUs; 3 free now on one node; starts now",
            GOOD,
        ),
        (
            replace(FIGURES, waiting=(1,), ahead=1, on_one_node=2),
            2,
            "uses 4 of 4 GPUs; 2 free now on one node; waits behind 1 of your team",
            WAIT,
        ),
        # A run that does not fit is skipped: it waits for more units than are left, or for a node with that many.
        (
            replace(FIGURES, waiting=(4, 4), ahead=2),
            3,
            "uses 4 of 4 GPUs; 3 free now on one node; starts now, before 2 of your team that cannot start yet",
            GOOD,
        ),
        (
            replace(FIGURES, waiting=(3,), ahead=1, on_one_node=2),
            2,
            "uses 3 of 4 GPUs; 2 free now on one node; starts now, before 1 of your team that cannot start yet",
            GOOD,
        ),
        (
            replace(FIGURES, waiting=(4, 2), ahead=2),
            2,
            "1 of your team's 4 GPUs is free and you request 2; waits behind 2 of your team until a workload of your "
            "team ends",
            WAIT,
        ),
        # With borrowing it fits; it takes the team's own units first.
        (
            replace(FIGURES, granted=2, waiting=(2,), ahead=1, borrowing_limit=1),
            1,
            f"your team's 2 GPUs are in use; up to 1 more {BORROWED}",
            WAIT,
        ),
        (
            replace(FIGURES, unit="slice", on_one_node=1),
            2,
            "uses 3 of 4 slices; no node has 2 slices free now (at most 1); waits until one has",
            WAIT,
        ),
        (
            replace(USED_UP, unit="share"),
            1,
            "your team's 4 shares are in use; waits until a workload of your team ends",
            WAIT,
        ),
        (
            replace(FIGURES, on_one_node=0),
            1,
            "uses 2 of 4 GPUs; no node has a GPU free now; waits until one has",
            WAIT,
        ),
        (
            replace(FIGURES, on_one_node=2),
            3,
            "uses 4 of 4 GPUs; no node has 3 GPUs free now (at most 2); waits until one has",
            WAIT,
        ),
        (
            replace(FIGURES, on_one_node=None),
            1,
            "uses 2 of 4 GPUs; free GPUs unknown, the cluster was not read",
            WAIT,
        ),
        (
            FIGURES,
            4,
            "3 of your team's 4 GPUs are free and you request 4; waits until a workload of your team ends",
            WAIT,
        ),
        (
            replace(FIGURES, used=3),
            2,
            "1 of your team's 4 GPUs is free and you request 2; waits until a workload of your team ends",
            WAIT,
        ),
        (USED_UP, 1, "your team's 4 GPUs are in use; waits until a workload of your team ends", WAIT),
        (
            replace(FIGURES, granted=1),
            1,
            "your team's 1 GPU is in use; waits until a workload of your team ends",
            WAIT,
        ),
        (
            replace(USED_UP, waiting=(2, 2, 1, 1), ahead=4),
            1,
            "your team's 4 GPUs are in use; waits behind 4 of your team until a workload of your team ends",
            WAIT,
        ),
        (replace(USED_UP, borrowing_limit=2), 1, f"your team's 4 GPUs are in use; up to 2 more {BORROWED}", WAIT),
        (
            replace(FIGURES, borrowing_limit=2),
            5,
            f"3 of your team's 4 GPUs are free and you request 5; up to 2 more {BORROWED}",
            WAIT,
        ),
        (LATER, 1, "your team has no quota in effect yet; starts when your grant starts", WAIT),
        (FIGURES, 6, "your team has a quota of 4 GPUs now; 6 can start when a larger grant starts", WAIT),
        (
            replace(
                FIGURES,
                held="Scheduling of A100 has been paused since 09:10 for a driver update; expected to resume at 14:00.",
            ),
            1,
            "Scheduling of A100 has been paused since 09:10 for a driver update; expected to resume at 14:00. "
            "New workloads wait until scheduling resumes.",
            WAIT,
        ),
        (
            replace(FIGURES, leaving="A100 is being retired."),
            1,
            "A100 is being retired. New workloads cannot start on it.",
            BAD,
        ),
        (replace(LATER, borrowing_limit=2), 1, f"your team has no quota in effect; up to 2 GPUs {BORROWED}", WAIT),
    ],
)
def test_what_a_launch_would_meet(figures: AvailabilityFigures, units: int, words: str, tone: str) -> None:
    assert availability_sentence(figures, None, units) == (words, tone)


ROOMY = replace(FIGURES, granted=16, used=0, on_one_node=4, free_on=(4, 3, 1))


@pytest.mark.parametrize(
    ("figures", "each", "workers", "words", "tone"),
    [
        (ROOMY, 2, 2, "uses 4 of 16 GPUs; 4 free now on one node; starts now", GOOD),
        (ROOMY, 2, 3, "uses 6 of 16 GPUs; enough free now on several nodes; starts now", GOOD),
        (
            ROOMY,
            2,
            4,
            "uses 8 of 16 GPUs; 3 of 4 workers fit now; starts when all of them fit",
            WAIT,
        ),
        (
            replace(ROOMY, waiting=(1,)),
            2,
            3,
            "uses 7 of 16 GPUs; 2 of 3 workers fit now; starts when all of them fit",
            WAIT,
        ),
        (ROOMY, 5, 2, "uses 10 of 16 GPUs; no node has 5 GPUs free now; waits until all 2 workers fit", WAIT),
        (
            replace(ROOMY, on_one_node=None, free_on=()),
            1,
            2,
            "uses 2 of 16 GPUs; free GPUs unknown, the cluster was not read",
            WAIT,
        ),
    ],
)
def test_what_several_workers_would_meet(
    figures: AvailabilityFigures, each: int, workers: int, words: str, tone: str
) -> None:
    assert availability_sentence(figures, None, each, workers) == (words, tone)


def test_as_many_workers_fit_wherever_what_goes_first_is_placed() -> None:
    for free_on in combinations_with_replacement(range(5), 3):
        for each, first in product((1, 2, 3), (0, 1, 2)):
            if first > max(free_on):
                continue
            figures = replace(
                ROOMY, granted=99, on_one_node=max(free_on), free_on=free_on, waiting=(first,) * (first > 0)
            )
            left = [(*free_on[:at], free_on[at] - first, *free_on[at + 1 :]) for at in range(3) if free_on[at] >= first]
            worst = min(sum(free // each for free in nodes) for nodes in left)
            assert figures.workers_now(each) <= worst, (free_on, each, first)
            if first == 0:
                assert figures.workers_now(each) == worst


def test_what_can_never_start_says_why() -> None:
    never = Refusal("exceeds_node", "9 of A100 asked, but no node has more than 8. Ask for fewer.")
    words = "Not possible: 9 of A100 asked, but no node has more than 8. Ask for fewer."
    assert availability_sentence(FIGURES, never, 9) == (words, BAD)


@pytest.mark.parametrize(
    ("units", "hours", "unit", "weight", "price", "words"),
    [
        (2, 8, "GPU", "1", "1.6", "2 GPUs for 8 h: 16 GPU-hours, price 25.60"),
        (1, None, "GPU", "1", "0", "1 GPU-hour per hour"),
        (1, None, "slice", "0.1429", "0", "0.14 GPU-hours per hour (a slice counts as 1/7 GPU)"),
        # Seven slices are one GPU, not 1.0003 GPUs.
        (7, 168, "slice", "0.1429", "0", "7 slices for 168 h: 168 GPU-hours (a slice counts as 1/7 GPU)"),
        (1, 3, "share", "0.25", "0.125", "1 share for 3 h: 0.75 GPU-hours (a share counts as 0.25 GPU), price 0.375"),
        (4, 10, "core", "0", "0.02", "4 cores for 10 h: price 0.80"),
        (4, None, "core", "0", "0.02", "price 0.08 per hour"),
        (4, 10, "core", "0", "0", ""),
        (4, None, "core", "0", "0", ""),
    ],
)
def test_what_it_costs(units: int, hours: int | None, unit: str, weight: str, price: str, words: str) -> None:
    exact = weights.exact_weight(Decimal(weight))
    assert cost(units, hours, unit=unit, weight=exact, price=Decimal(price)) == words


COMING = "No node has this now. A node is added on demand, usually within 7 minutes."


@pytest.mark.parametrize(
    ("units", "workers", "on_one_node", "added", "is_coming"),
    [
        (2, 1, 0, 4, True),
        (2, 1, 0, 1, False),
        (1, 1, 0, 0, False),
        (1, 1, 2, 2, False),
        (2, 2, 0, 4, True),
        (2, 2, 0, 3, False),
    ],
)
def test_a_node_that_is_added_on_demand(
    units: int, workers: int, on_one_node: int, added: int, is_coming: bool
) -> None:
    known = AvailabilityFigures(
        unit="GPU", granted=8, used=0, borrowing_limit=0, on_one_node=on_one_node, added=added, node_minutes=7
    )
    text, tone = availability_sentence(known, None, units, workers)
    assert (COMING in text) is is_coming
    assert tone == (GOOD if units <= on_one_node else WAIT)
