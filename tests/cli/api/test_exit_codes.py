"""The exit codes, as a table: scripts rely on them."""

from __future__ import annotations

from typing import Any

import pytest

from gpu_cli.api.errors import UsageError
from gpu_cli.api.exit_codes import ExitCode, exit_code
from gpu_cli.run_watch import has_reached, next_stage, parse_duration

AT = "2026-11-22T10:00:00Z"


def run(phase: str, *moments: str, outcome: str = "", verdict: str = "") -> dict[str, Any]:
    names = ("admitted_at", "started_at", "ready_at", "ended_at")
    status = {"phase": phase, "verdict": verdict}
    return {
        **{name: AT if name.removesuffix("_at") in moments else None for name in names},
        "outcome": outcome,
        "status": status,
    }


WAITS = run("queued", verdict="not_yet")
NEVER = run("blocked", verdict="never")
ASSIGNED = run("preparing", "admitted")
STARTS = run("starting", "admitted", "started")
RUNS = run("running", "admitted", "started", "ready")
# Kueue evicted it; its times are those of the first admission.
PUT_BACK = run("queued", "admitted", "started", "ready")
# The image does not exist: the pod is on a node and stays there.
STUCK = run("blocked", "admitted", verdict="stuck")
LOST_ITS_CLASS = run("running", "admitted", "started", verdict="never")


@pytest.mark.parametrize(
    ("found", "timed_out", "expected"),
    [
        (run("succeeded", "admitted", "started", "ended", outcome="succeeded"), False, 0),
        (run("succeeded", "admitted", "started", "ended", outcome="succeeded"), True, 0),
        (run("failed", "admitted", "started", "ended", outcome="failed"), False, 1),
        (run("failed", "admitted", "started", "ended", outcome="failed", verdict="over"), True, 1),
        (run("failed", "ended", outcome="lost"), False, 1),
        (run("stopped", "ended", outcome="stopped"), False, 1),
        (NEVER, False, 2),
        (NEVER, True, 2),
        (WAITS, True, 3),
        (PUT_BACK, True, 3),
        (ASSIGNED, True, 4),
        (STUCK, True, 4),
        (STARTS, True, 4),
        (RUNS, True, 4),
        (LOST_ITS_CLASS, True, 4),
        (RUNS, False, 0),
        (ASSIGNED, False, 0),
    ],
)
def test_exit_codes(found: dict[str, Any], timed_out: bool, expected: int) -> None:
    assert exit_code(found, timed_out=timed_out) is ExitCode(expected)


@pytest.mark.parametrize(
    ("found", "reached"),
    [
        (WAITS, []),
        (ASSIGNED, ["admitted"]),
        (STARTS, ["admitted"]),
        (RUNS, ["admitted", "ready"]),
        (run("failed", "ended", outcome="failed"), ["admitted", "ready", "finished"]),
    ],
)
def test_what_is_reached_and_what_is_waited_for_next(found: dict[str, Any], reached: list[str]) -> None:
    stages = ["admitted", "ready", "finished"]
    assert [stage for stage in stages if has_reached(found, stage)] == reached
    expected = "finished" if len(reached) > 1 else stages[len(reached)]
    assert next_stage(found, "finished") == expected
    assert next_stage(found, "admitted") == "admitted"


@pytest.mark.parametrize(("text", "expected"), [("90", 90), ("90s", 90), ("30m", 1800), ("2h", 7200), ("0", 0)])
def test_times(text: str, expected: float) -> None:
    assert parse_duration(text) == expected


@pytest.mark.parametrize("text", ["", "soon", "-1", "1d", "1.5h", "9999999"])
def test_what_is_no_time(text: str) -> None:
    with pytest.raises(UsageError, match="not a duration"):
        parse_duration(text)
