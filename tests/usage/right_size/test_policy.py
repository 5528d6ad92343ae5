"""Each rule beside the case in which it does not apply."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from usage.right_size.policy import advise
from usage.right_size.types import MeasuredUse, SizeAdvice, UnitSize

GIB = 1024
WHOLE = UnitSize("a100", "A100", "A100-80GB", 1.0, 80 * GIB, 3, is_slice=False, usable_units=8)
SMALL = UnitSize("1g", "1g.10gb", "A100-80GB", 1 / 7, 10 * GIB, 7, is_slice=True, usable_units=8)
MIDDLE = UnitSize("3g", "3g.40gb", "A100-80GB", 0.5, 40 * GIB, 0, is_slice=True, usable_units=8)
OF_ANOTHER_GPU = UnitSize("h1g", "H100 1g.10gb", "H100-80GB", 1 / 7, 10 * GIB, 7, is_slice=True, usable_units=8)
ALL = [WHOLE, SMALL, MIDDLE, OF_ANOTHER_GPU]
USE = MeasuredUse(
    units=1, days=14, hours=300, busy_units_max=1, activity_percent_max=12.0, memory_mib_max=6.0 * GIB,
    memory_percent_max=7.5,
)  # fmt: skip
EIGHT = replace(USE, units=8, busy_units_max=2, activity_percent_max=100.0, memory_percent_max=60.0)


def test_a_slice_that_fits_the_most_that_was_used() -> None:
    assert advise(USE, WHOLE, ALL) == SizeAdvice(
        suggestion="Use 1g.10gb",
        why="It used at most 6.0 GiB of 80 GiB GPU memory, and at most 12 % of its GPU in a minute, on 14 days, in 300 "
        "measured hours. 1g.10gb has 10 GiB; 7 are free now.",
        gpu_class="1g",
        units=1,
    )


@pytest.mark.parametrize(
    ("changes", "suggested"),
    [
        # Ninety percent of the slice's memory, and of its seventh of the GPU.
        ({"memory_mib_max": 9.0 * GIB}, "1g"),
        ({"memory_mib_max": 9.01 * GIB}, "3g"),
        ({"activity_percent_max": 12.8}, "1g"),
        ({"activity_percent_max": 12.9}, "3g"),
        ({"activity_percent_max": 45.1}, None),
        ({"memory_mib_max": 36.1 * GIB}, None),
        ({"memory_mib_max": None, "memory_percent_max": None}, None),
        ({"days": 7, "hours": 24}, "1g"),
        ({"days": 6}, None),
        ({"hours": 23.9}, None),
        ({"is_shared": True}, None),
    ],
)
def test_a_smaller_unit_needs_measurements_and_room(changes: Any, suggested: str | None) -> None:
    found = advise(replace(USE, **changes), WHOLE, ALL)
    assert (found and found.gpu_class) == suggested


def test_an_unknown_size_is_not_suggested() -> None:
    assert advise(USE, WHOLE, [replace(SMALL, memory_mib=None)]) is None
    assert advise(USE, replace(WHOLE, memory_mib=None), ALL) is None
    assert advise(USE, WHOLE, [OF_ANOTHER_GPU]) is None
    found = advise(USE, WHOLE, [replace(SMALL, free_units=None)])
    assert found is not None
    assert found.why.endswith("1g.10gb has 10 GiB.")


@pytest.mark.parametrize(("busy", "units"), [(2, 2), (7, 7), (0, 1)])
def test_gpus_that_were_never_busy_together(busy: int, units: int) -> None:
    found = advise(replace(EIGHT, busy_units_max=busy), WHOLE, ALL)
    assert found is not None
    assert (found.gpu_class, found.units) == ("a100", units)
    assert found.why.startswith(f"At most {busy} of 8 GPUs were busy at the same time on 14 days")


def test_all_gpus_that_were_busy_once_are_needed() -> None:
    assert advise(replace(EIGHT, busy_units_max=8), WHOLE, ALL) is None
    assert advise(replace(EIGHT, days=6), WHOLE, ALL) is None


@pytest.mark.parametrize(
    ("usable", "needs_quota", "end"),
    [
        (1, False, "1g.10gb has 10 GiB; 7 are free now."),
        (0, True, "1g.10gb has 10 GiB; 7 are free now. The team has no quota for 1g.10gb."),
    ],
)
def test_a_class_for_which_the_team_has_no_quota(usable: int, needs_quota: bool, end: str) -> None:
    found = advise(USE, WHOLE, [replace(SMALL, usable_units=usable)])
    assert found is not None
    assert (found.needs_quota, found.gpu_class, found.units) == (needs_quota, "1g", 1)
    assert found.why.endswith(end)


def test_a_larger_class_of_which_the_team_has_too_little() -> None:
    use = replace(USE, units=3, memory_percent_max=99.0)
    found = advise(use, SMALL, [replace(MIDDLE, usable_units=2)])
    assert found is not None
    assert (found.needs_quota, found.gpu_class, found.units) == (True, "3g", 3)
    assert found.why.endswith("The team can use at most 2 of 3g.40gb.")
    enough = advise(use, SMALL, [replace(MIDDLE, usable_units=3)])
    assert enough is not None
    assert not enough.needs_quota


def test_its_own_class_needs_no_more_quota() -> None:
    found = advise(EIGHT, replace(WHOLE, usable_units=0), ALL)
    assert found is not None
    assert not found.needs_quota


@pytest.mark.parametrize(("percent", "suggested"), [(97.0, "3g"), (96.9, None)])
def test_a_slice_whose_memory_was_full(percent: float, suggested: str | None) -> None:
    use = replace(USE, activity_percent_max=100.0, memory_mib_max=9.9 * GIB, memory_percent_max=percent)
    found = advise(use, SMALL, ALL)
    assert (found and found.gpu_class) == suggested


def test_a_whole_gpu_that_is_full_has_nothing_larger() -> None:
    assert advise(replace(USE, memory_percent_max=99.0), WHOLE, ALL) is None
