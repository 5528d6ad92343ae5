"""docs/faults.md: faults × operations, with the number of cases. `run.py soak faults` writes it; nobody edits it."""

from __future__ import annotations

import fcntl
import re

from devcluster.processes.paths import ROOT
from tests.faults.crashes.faults import FAULTS
from tests.faults.crashes.registry import OPERATIONS

DOCUMENT = ROOT / "docs" / "faults.md"
NONE = "–"
NOT_RUN = "not run"
Cells = dict[str, dict[str, str]]  # by fault, by operation

_HEAD = """# Faults

Written by `run.py soak faults`. Do not edit it: run that again.

A cell is the number of cases of this fault in this operation. After each of them, the portal continued without help and its end state was that of the undisturbed operation: the same rows (with events, notices and mails, each once), the same objects in the cluster. – means that the operation has no write of this kind, and *not run* that this case was not run yet.

- The last two rows are complete: a real SIGKILL before and after every write, which are enumerated from a recording of the undisturbed operation. A write is a commit in PostgreSQL, a request to the API server that changes something, or a mail. A message in Redis is only a hint.
- Every other fault strikes at one write, a different one for each fault. *For a while* means until the end of that pass of the worker. What is *away* is away for the call and what follows it: its repetition, or the first pass of the workers.
- The owners and operators of a team are told once when the API server refuses an object (403, 422); that is no difference.
- A worker that dies after it sent a mail and before it recorded that sends it again with the same `Message-ID`; such a mail counts once.
- The fence, the shape of each write in turn and random edits of objects have tests of their own: see `tests/faults`.

"""  # noqa: E501 - a paragraph is a line


def written(cells: Cells) -> str:
    lines = ["| fault | " + " | ".join(OPERATIONS) + " |", "|---|" + "---|" * len(OPERATIONS)]
    for fault in FAULTS:
        row = cells.get(fault, {})
        lines.append(f"| {fault} | " + " | ".join(row.get(operation, NOT_RUN) for operation in OPERATIONS) + " |")
    return _HEAD + "\n".join(lines) + "\n"


def read() -> Cells:
    if not DOCUMENT.exists():
        return {}
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in DOCUMENT.read_text().splitlines()]
    rows = [row for row in rows if len(row) > 1 and not re.fullmatch(r"-+", row[0])]
    head, *body = rows
    return {row[0]: dict(zip(head[1:], row[1:], strict=True)) for row in body}


def note(operation: str, results: dict[str, str]) -> None:
    """Replaces cells of one operation. Two processes may do that at once."""
    with DOCUMENT.open("r+") as alone:
        fcntl.flock(alone, fcntl.LOCK_EX)
        cells = read()
        for fault, cell in results.items():
            cells.setdefault(fault, {})[operation] = cell
        DOCUMENT.write_text(written(cells))
