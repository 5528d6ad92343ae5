"""Each problem of the table has its reason, numbers, way out and next action, and differs from its neighbour."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.workloads.problems import NOW, PROBLEMS, WISH, Problem
from workloads import progress
from workloads.phase import Status, Wish, status

BY_NAME = {problem.name: problem for problem in PROBLEMS}


def wish_of(problem: Problem) -> Wish:
    return replace(WISH, has_volume=problem.has_volume, sealed=problem.sealed)


def told(problem: Problem) -> Status:
    return status(wish_of(problem), problem.seen, now=NOW)


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.name)
def test_problem(problem: Problem) -> None:
    found = told(problem)
    assert (str(found.phase), found.reason, found.sentence) == (problem.phase, problem.reason, problem.sentence)
    assert found.facts == problem.facts
    assert found.actions == problem.actions
    assert problem.remedy in (found.explained.remedy if found.explained else "")


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.name)
def test_its_neighbour_differs(problem: Problem) -> None:
    neighbour = BY_NAME[problem.neighbour]
    assert told(problem).reason != told(neighbour).reason
    assert told(problem).sentence != told(neighbour).sentence


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.name)
def test_the_step_that_is_stuck_carries_the_text_behind_it(problem: Problem) -> None:
    wish = wish_of(problem)
    found = told(problem)
    if found.explained is None:
        return
    steps = progress.steps(wish, problem.seen, found)
    (current,) = [step for step in steps if step.state in (progress.BUSY, progress.STUCK)]
    assert problem.sentence in (current.problem or current.note)
    assert (current.state == progress.STUCK) == (problem.phase in ("blocked", "failed", "unknown"))
    assert current.raw == found.explained.raw
    if problem.raw:
        assert current.raw == problem.raw


def test_names_are_names() -> None:
    assert len(BY_NAME) == len(PROBLEMS) > 60
