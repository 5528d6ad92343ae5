"""Every state that depends on others has a deadline, after which the silent one is named."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from tests.workloads.cases.cluster_objects import ADMITTED, BOUND, NOW, SUSPENDED, WISH, condition, job, pod, queue
from workloads.core.observation import Observation
from workloads.status.explain.types import Who, who_acts
from workloads.status.phase import status_of

LONG = timedelta(minutes=4)


def bound(age: timedelta, **more: str) -> Observation:
    return Observation(job(), ADMITTED, (pod(replace(BOUND, since=NOW - age), node="a100-1", **more),))


ADMITTED_LONG = queue(condition("QuotaReserved"), condition("Admitted", since=NOW - LONG))


@pytest.mark.parametrize(
    ("seen", "reason"),
    [
        (Observation(replace(SUSPENDED, created_at=NOW - LONG)), "not_in_queue"),
        (Observation(job(), ADMITTED_LONG), "no_pod"),
        (Observation(job(), ADMITTED, (pod(created_at=NOW - LONG),)), "scheduler_silent"),
        (bound(LONG), "kubelet_silent"),
        (Observation(), "job_gone"),
    ],
)
def test_a_state_of_others_has_an_end(seen: Observation, reason: str) -> None:
    told = status_of(WISH, seen, now=NOW)
    assert told.reason == reason
    assert told.since is not None
    assert reason == "job_gone" or who_acts(reason) is Who.OPERATORS


def test_a_kubelet_that_reports_is_not_silent() -> None:
    assert status_of(WISH, bound(timedelta(minutes=2)), now=NOW).reason == "preparing"
    creating = bound(LONG, state="waiting", reason="ContainerCreating")
    assert status_of(WISH, creating, now=NOW).reason == "preparing"
