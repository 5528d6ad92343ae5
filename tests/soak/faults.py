"""The whole of what tests/faults/test_writes.py takes a part of: each write of one provisioning × each fault."""

from __future__ import annotations

import pytest

from tests.faults.conftest import proxy, stage
from tests.faults.scenes import Stage
from tests.faults.writes import FAULTS, each_write_in_turn

__all__ = ["proxy", "stage"]


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
