"""The status that the portal shows for a problem."""

from __future__ import annotations

from dataclasses import replace

from tests.workloads.cases.problems import NOW, WISH, Problem
from workloads.status.desired_run import DesiredRun
from workloads.status.phase import status_of
from workloads.status.types import Status


def wish_of(problem: Problem) -> DesiredRun:
    return replace(WISH, volume="data" if problem.has_volume else "", sealed=problem.sealed)


def told(problem: Problem) -> Status:
    return status_of(wish_of(problem), problem.seen, now=NOW)
