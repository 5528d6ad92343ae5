"""When the memory of shared GPUs is short, beside the cases in which it is not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from usage.right_size.replicas.policy import fewer_replicas
from usage.right_size.replicas.types import FewerReplicas, SharedMemoryUse

FULL = SharedMemoryUse(
    replicas=4, period_days=14, days=7, hours=24, memory_percent_max=98.4, full_days=2, full_hours=5, runs=40,
    failed_runs=0, failed_workloads=0, units=16, promised=12,
)  # fmt: skip
FAILING = replace(FULL, days=0, hours=0, memory_percent_max=None, full_days=0, failed_runs=3, failed_workloads=2)


def test_gpus_that_were_full() -> None:
    assert fewer_replicas(FULL) == FewerReplicas(
        4,
        2,
        "The memory of a GPU was up to 98 % full, and at least 95 % in 5 hours on 2 days, of 24 measured hours on 7 "
        "days.",
        "A workload would share the memory of its GPU with at most 1 other instead of 3. The class would have 8 units "
        "instead of 16; 12 are allocated to teams, 4 too many.",
    )


def test_runs_that_ran_out_of_it() -> None:
    found = fewer_replicas(FAILING)
    assert found is not None
    assert found.why == "3 of 40 runs, of 2 workloads, ended because GPU memory was full, in 14 days."
    both = fewer_replicas(replace(FULL, failed_runs=1, failed_workloads=1))
    assert both is not None
    assert both.why.startswith("The memory of a GPU was up to 98 % full")
    assert both.why.endswith("1 of 40 runs, of 1 workload, ended because GPU memory was full, in 14 days.")


@pytest.mark.parametrize(
    ("use", "changes"),
    [
        (FULL, {"full_days": 1}),
        (FULL, {"days": 6}),
        (FULL, {"hours": 23}),
        (FULL, {"memory_percent_max": None}),
        (FULL, {"replicas": 1}),
        (FAILING, {"failed_workloads": 1}),
        (FAILING, {"replicas": 1}),
    ],
)
def test_what_proposes_nothing(use: SharedMemoryUse, changes: dict[str, Any]) -> None:
    assert fewer_replicas(use) is not None
    assert fewer_replicas(replace(use, **changes)) is None


@pytest.mark.parametrize(("replicas", "fewer"), [(2, 1), (3, 1), (5, 2), (10, 5)])
def test_half_of_the_replicas(replicas: int, fewer: int) -> None:
    found = fewer_replicas(replace(FULL, replicas=replicas))
    assert found is not None
    assert (found.replicas, found.fewer) == (replicas, fewer)


@pytest.mark.parametrize(
    ("changes", "end"),
    [
        ({"promised": 8}, "The class would have 8 units instead of 16; 8 are allocated to teams."),
        ({"units": 15}, "The class would have 7 units instead of 15; 12 are allocated to teams, 5 too many."),
        ({"replicas": 5, "units": 20}, "would have 8 units instead of 20; 12 are allocated to teams, 4 too many."),
        ({"units": None}, "How many units the class would have is unknown: the cluster was not read."),
        ({"replicas": 2}, "with no other instead of 1. The class would have 8 units instead of 16; 12 are allocated to "
         "teams, 4 too many."),
    ],
)  # fmt: skip
def test_what_would_change(changes: dict[str, Any], end: str) -> None:
    found = fewer_replicas(replace(FULL, **changes))
    assert found is not None
    assert found.effect.endswith(end)
