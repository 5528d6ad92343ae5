"""Each problem of the table has its reason, numbers, remedy and next action, and differs from its neighbour."""

from __future__ import annotations

import re

import pytest

from tests.workloads.cases.problem_status import told, wish_of
from tests.workloads.cases.problems import PROBLEMS, Problem
from workloads.status import progress
from workloads.status.explain.types import FACTS

BY_NAME = {problem.name: problem for problem in PROBLEMS}


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
    steps = progress.progress_steps(wish, problem.seen, found)
    (current,) = [step for step in steps if step.state in (progress.BUSY, progress.STUCK)]
    assert problem.sentence in (current.problem or current.note)
    assert (current.state == progress.STUCK) == (problem.phase in ("blocked", "failed", "unknown"))
    assert current.raw == found.explained.raw
    if problem.raw:
        assert current.raw == problem.raw


def test_names_are_names() -> None:
    assert len(BY_NAME) == len(PROBLEMS) > 60


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.name)
def test_its_facts_are_of_the_kinds_that_their_names_promise(problem: Problem) -> None:
    for name, value in told(problem).facts.items():
        assert isinstance(value, FACTS[name]), name
        assert not isinstance(value, bool), name


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.name)
def test_it_says_a_way_out_in_whole_sentences_and_offers_no_log_where_nothing_ran(problem: Problem) -> None:
    found = told(problem)
    pod = problem.seen.pod
    assert re.fullmatch(r"[A-Z0-9].*[.]", found.sentence) or found.sentence.startswith("minimal:1")
    assert "  " not in found.sentence
    if found.explained is not None:
        assert re.fullmatch(r"[A-Z].*[.]", found.explained.remedy)
    ran = pod is not None and any(
        one.state in ("running", "terminated") and one.reason != "StartError"
        for one in (*pod.init_containers, *pod.containers)
    )
    assert ran or "log" not in found.actions
