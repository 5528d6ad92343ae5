"""All cases of which test_writes.py and test_killed.py of tests/faults run a part: each write × each fault."""

from __future__ import annotations

import pytest

from tests.faults.conftest import proxy, stage
from tests.faults.killed import MOMENTS, Zygote, killed_around_each_write
from tests.faults.scenes import Stage
from tests.faults.test_killed import zygote
from tests.faults.writes import FAULTS, each_write_in_turn

__all__ = ["proxy", "stage", "zygote"]


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
