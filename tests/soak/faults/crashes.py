"""Every operation: killed before and after each of its writes, and under each fault; writes docs/faults.md.

It takes hours on two cores. `-k "launch and killed"` runs a part of it, and replaces that part of the table.
SOAK_EVERY=n kills at one write in so many, and then leaves the table as it is.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from devcluster.faults.api_proxy import ApiProxy
from tests.faults.crashes import table
from tests.faults.crashes.conftest import crash_stage
from tests.faults.crashes.faults import FAULTS, KILLED, Result, strike
from tests.faults.crashes.killing import killed_everywhere
from tests.faults.crashes.registry import OPERATIONS
from tests.faults.crashes.stage import Stage

__all__ = ["crash_stage"]
pytestmark = pytest.mark.timeout(6 * 3600)
EVERY = int(os.environ.get("SOAK_EVERY", "1"))


@pytest.fixture
def proxy(services: dict[str, Any], tmp_path: Path) -> Iterator[ApiProxy]:
    with ApiProxy(services["kubeconfigs"]["worker"], tmp_path) as proxy:
        yield proxy


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize(("fault", "moment"), KILLED.items(), ids=["killed before", "killed after"])
def test_killed_at_every_write(
    crash_stage: Stage, operation: str, fault: str, moment: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    began = time.monotonic()
    deaths = killed_everywhere(crash_stage, operation, every=EVERY, moments=[moment])
    with capsys.disabled():
        missed = f", {len(deaths.missed)} did not come again: {deaths.missed}" if deaths.missed else ""
        took = time.monotonic() - began
        print(f"\n{operation}, {fault}: {deaths.died} of {deaths.points} points in {took:.0f} s{missed}")
    assert not deaths.wrong, "\n".join(deaths.wrong)
    assert deaths.died > 0
    if EVERY == 1:
        table.note(operation, {fault: str(deaths.died)})


@pytest.mark.parametrize("operation", OPERATIONS)
def test_under_every_fault(
    crash_stage: Stage, proxy: ApiProxy, operation: str, capsys: pytest.CaptureFixture[str]
) -> None:
    began = time.monotonic()
    recorded = crash_stage.case(operation)
    results: dict[str, Result] = {}
    for fault in FAULTS:
        if fault not in KILLED:
            try:
                results[fault] = strike(crash_stage, proxy, operation, fault, recorded)
            except AssertionError as error:
                results[fault] = Result(1, [str(error)])
    wrong = {fault: result.wrong for fault, result in results.items() if result.wrong}
    with capsys.disabled():
        print(f"\n{operation}: {len(results)} faults in {time.monotonic() - began:.0f} s")
    table.note(operation, {fault: cell(result) for fault, result in results.items()})
    assert not wrong, "\n".join(f"{fault}: {line}" for fault, lines in wrong.items() for line in lines)


def cell(result: Result) -> str:
    if result.wrong:
        return "wrong"
    if result.is_missed:
        return table.NOT_RUN
    return str(result.cases) if result.cases else table.NONE
