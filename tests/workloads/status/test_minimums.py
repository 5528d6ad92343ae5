"""A namespace whose LimitRange has a minimum: told with its numbers, and the step brings as much as is needed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.workloads.cases.advice import A100, FULL
from tests.workloads.cases.cluster_objects import ABOVE, NOW, SUSPENDED, WISH, pending
from workloads.advice.advice import advice
from workloads.core.observation import LocalQueueState, Observation
from workloads.status.phase import status_of
from workloads.status.types import Status

BELOW = ABOVE.replace("above", "below").replace("max", "min")
# Two units of four cores and 8 GiB.
FACTS = replace(FULL, own=replace(A100, cpu=4, memory_gib=8))


def told(**minimums: str) -> Status:
    asked = replace(WISH, asked={"cpu": "1", "memory": "2Gi"})
    seen = Observation(SUSPENDED, pending(BELOW), at=LocalQueueState({}, minimums=minimums))
    return status_of(asked, seen, now=NOW)


def test_it_is_told_with_what_was_asked_and_what_is_the_least() -> None:
    assert told(cpu="2", memory="2Gi").sentence == (
        "The namespace's LimitRange rejects the pod: cpu per container: 1 core requested, minimum 2."
    )
    assert told(cpu="2").facts == {"resource": "cpu", "asked": 1, "limit": 2}
    for unknown in (told(), told(cpu="1")):
        assert unknown.sentence.endswith("cpu and memory requested below the minimum for one container.")


@pytest.mark.parametrize(
    ("minimums", "label", "where"),
    [
        ({"cpu": "8"}, "Request more cores", "#id_cpu"),
        ({"memory": "16Gi"}, "Request more memory", "#id_memory_gib"),
        ({"cpu": "9"}, "Request 3 GPUs instead of 2", "?class=a100&units=3#id_units"),
        ({"memory": "20Gi"}, "Request 3 GPUs instead of 2", "?class=a100&units=3#id_units"),
        ({}, "Change cores or memory", "#id_cpu"),
    ],
)
def test_the_step_brings_the_minimum(minimums: dict[str, str], label: str, where: str) -> None:
    found = advice(told(**minimums), FACTS)
    assert found is not None
    step = found.steps[0]
    assert step.way is not None
    assert (step.verb, step.label) == ("change", label)
    assert step.way.href("team-a") == f"/teams/team-a/workloads/one/change{where}"


def test_no_step_of_ones_own_if_no_size_of_the_class_is_enough() -> None:
    found = advice(told(cpu="33"), FACTS)
    assert found is not None
    assert [step.verb for step in found.steps] == ["tell_operators"]
