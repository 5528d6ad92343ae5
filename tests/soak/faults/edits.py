"""All cases of which tests/faults run a part: each write × each fault, and 10,000 random edits of our objects.

The edits take about an hour on two cores. SOAK_EDITS sets another number.
"""

from __future__ import annotations

import os

import pytest

from tests.faults.conftest import proxy, stage
from tests.faults.killed import MOMENTS, Zygote, killed_around_each_write
from tests.faults.random_edits.crowd import Crowd
from tests.faults.random_edits.test_random_edits import edited
from tests.faults.scenes import Stage
from tests.faults.test_killed import zygote
from tests.faults.writes import FAULTS, each_write_in_turn

__all__ = ["proxy", "stage", "zygote"]
EDITS = int(os.environ.get("SOAK_EDITS", "10000"))
OF_POOLS = 20  # of 100


@pytest.mark.parametrize("lasting", [False, True], ids=["once", "lasting"])
@pytest.mark.parametrize("fault", FAULTS)
def test_each_write_in_turn(
    stage: Stage,
    fault: str,
    lasting: bool,
    capsys: pytest.CaptureFixture[str],
) -> None:
    cases = each_write_in_turn(stage, "namespace", fault, lasting=lasting)
    with capsys.disabled():
        print(f"\n{fault}, {'lasting' if lasting else 'once'}: {cases} writes")


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("moment", MOMENTS)
def test_killed_around_each_write(stage: Stage, zygote: Zygote, moment: str) -> None:
    assert killed_around_each_write(stage, zygote, "namespace", moment) >= 10


# Committed: in one long transaction each write of a row leaves a version that the next one has to pass.
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("sort", "share"), [("namespace", 100 - OF_POOLS), ("pool", OF_POOLS)])
def test_each_edit_is_repaired_or_reported(
    stage: Stage, sort: str, share: int, capsys: pytest.CaptureFixture[str]
) -> None:
    number = EDITS * share // 100
    found = edited(Crowd(stage, sort), at_once=20, edits=number)
    with capsys.disabled():
        print(f"\n{sort}: {found.accepted} edits: {dict(found.told)}")
    assert found.accepted >= number, found.told
    assert not found.problems, "\n".join(found.problems)
