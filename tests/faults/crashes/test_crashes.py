"""A real SIGKILL at some of the writes of some operations; `run.py soak faults` has every write of all of them."""

from __future__ import annotations

import pytest

from tests.faults.crashes.killing import killed_everywhere
from tests.faults.crashes.stage import Stage

EVERY = {"announcement": 4, "decide": 22, "provision": 20}


@pytest.mark.parametrize("name", EVERY)
def test_killed_at_some_writes(crash_stage: Stage, name: str) -> None:
    deaths = killed_everywhere(crash_stage, name, every=EVERY[name])
    assert deaths.wrong == ()
    assert deaths.missed == ()
    assert deaths.died >= 2
