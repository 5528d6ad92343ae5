"""10,000 random edits of our objects on the API server: each is repaired or reported, and nothing else changes.

About an hour on two cores. SOAK_EDITS sets another number.
"""

from __future__ import annotations

import os

import pytest

from tests.faults.conftest import proxy, stage
from tests.faults.random_edits.crowd import Crowd
from tests.faults.random_edits.test_random_edits import edited
from tests.faults.scenes import Stage

__all__ = ["proxy", "stage"]
EDITS = int(os.environ.get("SOAK_EDITS", "10000"))
OF_POOLS = 20  # of 100


@pytest.mark.parametrize(("sort", "share"), [("namespace", 100 - OF_POOLS), ("pool", OF_POOLS)])
def test_each_is_repaired_or_reported(stage: Stage, sort: str, share: int, capsys: pytest.CaptureFixture[str]) -> None:
    number = EDITS * share // 100
    found = edited(Crowd(stage, sort), at_once=20, edits=number)
    with capsys.disabled():
        print(f"\n{sort}: {found.accepted} edits: {dict(found.told)}")
    assert found.accepted >= number, found.told
    assert not found.problems, "\n".join(found.problems)
