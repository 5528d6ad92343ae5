"""Random edits of our objects by others are repaired or reported, and nothing else changes. `run.py soak faults` makes
10,000 of them.
"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.faults.random_edits.crowd import Crowd
from tests.faults.random_edits.edits import Edit
from tests.faults.random_edits.edits import edits as random_edits
from tests.faults.random_edits.schemas import Schemas
from tests.faults.scenes import Key, Stage

EDITS = {"namespace": 60, "pool": 20}


@pytest.mark.parametrize("sort", EDITS)
def test_random_edits(stage: Stage, sort: str) -> None:
    found = edited(Crowd(stage, sort), at_once=5, edits=EDITS[sort])
    assert not found.problems, "\n".join(found.problems)
    assert found.told["repaired"] > EDITS[sort] / 4, found.told


def edited(found: Crowd, *, at_once: int, edits: int) -> Crowd:
    """Makes so many edits that the API server accepts, provided that it accepts half of those tried; the same each
    time. A problem does not end it, so that each kind is found in one run: a new team replaces the one that has it.
    """
    found.grow(at_once)
    one = random_edits(Schemas(found.stage.admin), found.example())

    @settings(
        max_examples=2 * edits // at_once,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.lists(one, min_size=at_once, max_size=at_once))
    def one_round(chosen: list[tuple[Key, Edit]]) -> None:
        if found.accepted < edits:
            found.grow(at_once)
            found.round(chosen)

    one_round()
    return found
