"""Exit codes. Scripts depend on them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Any


class ExitCode(IntEnum):
    DONE = 0
    FAILED = 1
    USAGE = 2  # as click's own errors
    TIMED_OUT_QUEUED = 3
    TIMED_OUT_RUNNING = 4
    UNREACHABLE = 5
    REFUSED = 6  # by the portal, or the workload can never start
    NOT_SIGNED_IN = 7


def exit_code(run: Mapping[str, Any], *, timed_out: bool) -> ExitCode:
    """Returns the exit code for a run as the API returns it, with its `status`. `timed_out`: the stage was not reached
    in time.
    """
    if run["ended_at"] is not None:
        return ExitCode.DONE if run["outcome"] == "succeeded" else ExitCode.FAILED
    if can_never_start(run):
        return ExitCode.REFUSED
    if not timed_out:
        return ExitCode.DONE
    return ExitCode.TIMED_OUT_QUEUED if is_queued(run) else ExitCode.TIMED_OUT_RUNNING


def exit_code_of_request(request: Mapping[str, Any]) -> ExitCode:
    """Returns the exit code for a quota request as the API returns it, after a wait. Approved: at least one line is."""
    if request["state"] == "pending":
        return ExitCode.TIMED_OUT_QUEUED
    return ExitCode.DONE if request["state"] == "approved" else ExitCode.FAILED


def is_queued(run: Mapping[str, Any]) -> bool:
    """Whether the run has no units: it was never admitted, or it was preempted. A preempted run keeps the times of its
    first admission.
    """
    never_had = run["admitted_at"] is None and run["started_at"] is None
    return never_had or run["status"]["phase"] == "queued"


def can_never_start(run: Mapping[str, Any]) -> bool:
    return run["ended_at"] is None and run["started_at"] is None and run["status"]["verdict"] == "never"
