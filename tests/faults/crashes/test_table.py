"""docs/faults.md has a result for every fault in every operation."""

from __future__ import annotations

import re

from tests.faults.crashes.faults import FAULTS, KILLED
from tests.faults.crashes.registry import OPERATIONS
from tests.faults.crashes.table import DOCUMENT, NONE, NOT_RUN, read, written

NAMED = {
    "launch", "stop", "decide", "provision", "close", "requeue", "idle stop", "volume delete", "maintenance",
    "MIG change", "adoption", "undo of an adoption", "move to another cluster", "announcement", "import",
}  # fmt: skip


def test_every_fault_has_a_result_in_every_operation() -> None:
    cells = read()
    assert set(OPERATIONS) == NAMED
    assert len(FAULTS) == len(set(FAULTS)) == 34
    assert list(cells) == list(FAULTS), "run.py soak faults writes the table"
    for fault, row in cells.items():
        assert list(row) == list(OPERATIONS), fault
        for operation, cell in row.items():
            assert re.fullmatch(rf"[1-9]\d*|{NONE}|{NOT_RUN}", cell), f"{fault} in {operation}: {cell}"
            assert fault not in KILLED or cell != NONE, f"{fault} in {operation}"


def test_it_is_as_it_is_written() -> None:
    assert DOCUMENT.read_text() == written(read())
