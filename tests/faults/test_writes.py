"""Failing writes, short form: every fault at some of the writes; `run.py soak faults` covers all of them."""

from __future__ import annotations

import pytest

from tests.faults.scenes import Stage
from tests.faults.writes import FAULTS, each_write_in_turn


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_that_strikes_once(stage: Stage, fault: str) -> None:
    assert each_write_in_turn(stage, "namespace", fault, lasting=False, every=4) >= 2


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_that_lasts(stage: Stage, fault: str) -> None:
    assert each_write_in_turn(stage, "namespace", fault, lasting=True, every=5) >= 2


@pytest.mark.parametrize("lasting", [False, True], ids=["once", "lasting"])
@pytest.mark.parametrize("fault", FAULTS)
def test_the_pool(stage: Stage, fault: str, lasting: bool) -> None:
    assert each_write_in_turn(stage, "pool", fault, lasting=lasting) >= 2
