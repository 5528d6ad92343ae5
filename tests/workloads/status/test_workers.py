"""Several workers as one status: how many are ready, and which one the others wait for. Each beside a neighbour."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from cluster.reads.observed import Job, Pod
from tests.workloads.cases.cluster_objects import ADMITTED, AGO, BOUND, NOW, WISH, condition, job, pending, pod, warning
from workloads.core.observation import NodeTrouble, Observation
from workloads.status import outcome, progress, workers
from workloads.status.desired_run import DesiredRun
from workloads.status.failure_record import FailureRecord
from workloads.status.phase import status_of
from workloads.status.types import Phase, Status

GANG = replace(WISH, kind="job", units=2, workers=4)
INDEX = "batch.kubernetes.io/job-completion-index"


def of(index: int, *conditions: Any, **changes: Any) -> Pod:
    values = {"name": f"one-1-{index}-abc", "uid": f"pod-{index}", "labels": {INDEX: str(index)}, "node": f"n{index}"}
    return pod(BOUND, *conditions, **{**values, **changes})


def runs(index: int, **changes: Any) -> Pod:
    return of(index, condition("Ready"), **{"state": "running", "phase": "Running", **changes})


def ended(index: int, code: int, **changes: Any) -> Pod:
    found = of(index, state="terminated", exit_code=code, phase="Failed" if code else "Succeeded", **changes)
    return replace(found, containers=(replace(found.containers[0], ended_at=NOW),))


def with_log(failed: Pod, text: str) -> Pod:
    return replace(failed, containers=(replace(failed.containers[0], message=text),))


PEER_LOST = "ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely."


def said(*pods: Pod, wish: DesiredRun = GANG, of_job: Job | None = None, **more: Any) -> Status:
    return status_of(wish, Observation(of_job or job(), ADMITTED, pods, **more), now=NOW)


ALL = (runs(0), runs(1), runs(2), runs(3))


@pytest.mark.parametrize(
    ("pods", "phase", "ready", "sentence"),
    [
        (ALL, "running", 4, "4 of 4 ready."),
        (ALL[:3], "preparing", 3, "3 of 4 ready. Worker 3: Admitted; its pod is being created."),
        (ALL[:2], "preparing", 2, "2 of 4 ready. Worker 2 and 1 more: Admitted; its pod is being created."),
        ((*ALL[:3], of(3, state="waiting")), "preparing", 3, "3 of 4 ready. Worker 3: On n3: pulling the image and"),
        (
            (*ALL[:3], of(3, state="waiting", reason="ImagePullBackOff", message="not found")),
            "blocked", 3, "3 of 4 ready. Worker 3: ",
        ),
        ((ended(0, 0), *ALL[1:]), "running", 4, "1 of 4 completed, the others continue."),
        (tuple(ended(index, 0) for index in range(4)), "succeeded", 4, "All 4 workers completed; the portal is"),
        ((runs(0), ended(1, 3), *ALL[2:]), "failed", 3, "3 of 4 ready. Worker 1: "),
    ],
)  # fmt: skip
def test_how_many_are_ready_and_which_one_the_others_wait_for(
    pods: tuple[Pod, ...], phase: str, ready: int, sentence: str
) -> None:
    found = said(*pods)
    assert (found.phase, found.facts["ready"], found.facts["workers"]) == (phase, ready, 4)
    assert found.sentence.startswith(sentence)


def test_a_warning_and_a_lost_node_are_of_one_worker_alone() -> None:
    waits = of(2, state="waiting", reason="ContainerCreating", created_at=AGO)
    told = replace(warning("Pod", "FailedMount", "MountVolume.SetUp failed"), object_name="one-1-2-abc")
    assert said(*ALL[:2], waits, ALL[3], warnings=(told,)).sentence.startswith("3 of 4 ready. Worker 2: ")
    other = replace(told, object_name="one-1-3-abc")
    assert "cannot mount" not in said(*ALL[:2], waits, ALL[3], warnings=(other,)).sentence

    lost = NodeTrouble("n1", AGO, "NodeStatusUnknown", "")
    found = said(*ALL, lost=lost)
    assert (found.phase, found.facts["worker"]) == (Phase.UNKNOWN, 1)


@pytest.mark.parametrize(
    ("retries", "failed", "phase", "words"),
    [
        (0, 1, "failed", "exit code 3"),
        (1, 1, "preparing", "Retry 1 of 1."),
        (3, 2, "preparing", "Retry 2 of 3."),
        (1, 2, "failed", "exit code 3"),
    ],
)
def test_a_crash_is_the_end_when_no_try_is_left(retries: int, failed: int, phase: str, words: str) -> None:
    wish = replace(GANG, workers=1, retries=retries)
    found = said(*(ended(0, 3, name=f"try-{number}") for number in range(failed)), wish=wish)
    assert found.phase == phase
    assert words in found.sentence


def test_a_try_that_runs_says_which_it_is_and_a_disruption_is_none() -> None:
    wish = replace(GANG, workers=1, retries=3)
    assert said(ended(0, 3), runs(0), wish=wish).sentence == "Running on n0. Retry 1 of 3."
    evicted = replace(ended(0, 137), conditions=(condition("DisruptionTarget", reason="EvictionByEvictionAPI"),))
    assert said(evicted, runs(0), wish=wish).sentence == "Running on n0."
    gang = replace(GANG, retries=3)
    assert said(*ALL[:3], ended(3, 3), runs(3), wish=gang).sentence == "4 of 4 ready. Worker 3: Retry 1 of 3."


@pytest.mark.parametrize(
    ("message", "reason", "words"),
    [
        (
            "insufficient unused quota for nvidia.com/gpu in flavor a100-1, 2 more needed",
            "waiting_for_quota",
            "2 units of A100 are missing; it needs 8, more than your team's quota has free.",
        ),
        (
            "insufficient unused quota for nvidia.com/gpu in flavor a100-1, 8 more needed",
            "waiting_for_quota",
            "8 units of A100 are missing; your team's quota is in use.",
        ),
        ('topology "gpu-portal" allows to fit only 3 out of 4 pod(s)', "gang_fits_in_part", "Only 3 of 4 workers"),
        ('topology "gpu-portal" doesn\'t allow to fit any of 4 pod(s)', "gang_fits_in_part", "Only 0 of 4 workers"),
        (
            "insufficient quota for x in flavor a, maximum capacity (4)",
            "exceeds_maximum",
            "8 units of A100 requested, but your team may use at most 4",
        ),
    ],
)
def test_why_a_gang_waits(message: str, reason: str, words: str) -> None:
    found = status_of(GANG, Observation(job(suspend=True), pending(message)), now=NOW)
    assert (found.reason, found.phase) == (reason, Phase.BLOCKED if reason == "exceeds_maximum" else Phase.QUEUED)
    assert words in found.sentence


def of_gang(kind: str) -> Job:
    return replace(job(condition(kind, since=NOW)), completions=4, parallelism=4)


def test_who_failed_is_who_crashed_and_not_who_was_taken_along() -> None:
    """All four have failed: one crashed, the others because their Job ended."""
    taken = [ended(index, 143, deleting_since=NOW) for index in (0, 1, 3)]
    pods = (taken[0], taken[1], ended(2, 3), taken[2])
    found = outcome.outcome_of(Observation(of_gang("Failed"), ADMITTED, pods), kind="job")
    assert found is not None
    assert (found.outcome, found.exit_code, found.message.split(" ")[:2]) == ("failed", 3, ["Worker", "2:"])
    # Of several that crashed: the one with the most retries, then the first one.
    twice = (ended(0, 1), ended(1, 3, name="first"), ended(1, 4))
    assert workers.failed_pod(twice) == twice[2]
    early = replace(ended(3, 9), containers=(replace(ended(3, 9).containers[0], ended_at=NOW - timedelta(seconds=9)),))
    assert workers.failed_pod((ended(0, 1), early)) == early

    # Two ended within the same second: one tells that it lost the other.
    full, lost = (with_log(ended(index, 1), text) for index, text in ((3, "CUDA out of memory."), (0, PEER_LOST)))
    assert workers.failed_pod((lost, full)) == full
    assert workers.failed_pod((lost, ended(1, 1), ended(1, 1))) == ended(1, 1)
    assert workers.failed_pod((lost, replace(full, deleting_since=NOW))) == lost

    assert found.told is not None
    over = replace(GANG, ended_at=NOW, outcome="failed", message="Worker 2: x", kept=FailureRecord(found.told))
    told = status_of(over, Observation(pods=pods), now=NOW)
    assert told.facts["exit_code"] == 3


def test_all_of_them_have_to_end_well() -> None:
    done = outcome.outcome_of(Observation(of_gang("Complete"), ADMITTED, ()), kind="job")
    assert done is not None
    assert done.message == "All 4 workers completed with exit code 0."


def test_it_is_ready_when_the_last_one_is() -> None:
    late = runs(3)
    late = replace(late, conditions=(BOUND, condition("Ready", since=NOW)))
    assert workers.all_ready_since((*ALL[:3], late), 4) == NOW
    assert workers.all_ready_since(ALL[:3], 4) is None
    assert workers.all_ready_since((runs(0),), 1) == AGO


def test_its_steps_are_those_of_the_slowest() -> None:
    wish = replace(GANG, admitted_at=AGO, started_at=AGO)
    pods = (*ALL[:3], of(3, state="waiting", since=None))
    seen = Observation(job(), ADMITTED, pods)
    steps = {step.title: step for step in progress.progress_steps(wish, seen, status_of(wish, seen, now=NOW))}
    assert steps["Node assigned"].note == "n0, n1, n2, n3"
    assert (steps["Image"].state, steps["Running"].state) == ("busy", "next")
    seen = Observation(job(), ADMITTED, ALL[:3])
    states = [step.state for step in progress.progress_steps(wish, seen, status_of(wish, seen, now=NOW))]
    assert states == ["done", "done", "busy", "next", "next"], "one has no pod yet"
    seen = Observation(job(), ADMITTED, ALL)
    assert progress.progress_steps(wish, seen, status_of(wish, seen, now=NOW))[-1].state == "done"


def test_whose_log_is_shown_first() -> None:
    assert workers.default_log_worker(ALL) == 0
    assert workers.default_log_worker((*ALL[:2], ended(2, 1))) == 2
    assert workers.default_log_worker(()) == 0
    assert workers.default_log_worker((pod(),)) == 0
