"""All operations, by the name that the table in docs/faults.md has."""

from __future__ import annotations

from tests.faults.crashes.operations import adoptions, nodes, runs, teams
from tests.faults.crashes.types import Operation

OPERATIONS: dict[str, Operation] = {**runs.OPERATIONS, **teams.OPERATIONS, **nodes.OPERATIONS, **adoptions.OPERATIONS}
