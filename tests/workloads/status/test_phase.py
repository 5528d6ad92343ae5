"""(rows, observation) → status. Each situation beside a neighbour that must differ."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from tests.workloads.cases.cluster_objects import (
    ADMITTED,
    AGO,
    BOUND,
    EXCEEDED,
    JUST,
    NEEDED,
    NOW,
    OVER,
    READY,
    SUSPENDED,
    UNBOUND,
    UNSCHEDULABLE,
    WISH,
    condition,
    job,
    pending,
    pod,
    queue,
    warning,
)
from workloads.core.observation import Observation
from workloads.status import outcome as status_outcome
from workloads.status.desired_run import DesiredRun
from workloads.status.phase import status_of
from workloads.status.types import Phase, Status

RUNNING = pod(BOUND, state="running", node="a100-1", phase="Running")

CASES: list[tuple[str, DesiredRun | None, Observation | None, str, str, str]] = [
    ("never started", None, Observation(), "stopped", "not_started", "Not started yet."),
    ("no mirror", WISH, None, "unknown", "cluster_not_read", "has not read the cluster"),
    ("not sent yet", replace(WISH, sent="", sent_at=None), Observation(), "queued", "requested", "Requested just now"),
    (
        "API server away",
        replace(WISH, sent="", problem="cluster_unavailable"),
        Observation(),
        "queued",
        "cluster_unavailable",
        "Your notebook is saved and starts when the cluster responds.",
    ),
    (
        "refused",
        replace(WISH, sent="refused", sent_text="no"),
        Observation(),
        "blocked",
        "refused_by_cluster",
        "rejected the job",
    ),
    ("sent, not mirrored yet", replace(WISH, sent_at=JUST), Observation(), "queued", "requested", "Requested just now"),
    ("sent long ago, not there", WISH, Observation(), "unknown", "job_gone", "no longer in the cluster"),
    (
        "Kueue is slow",
        WISH,
        Observation(job=job(suspend=True, created_at=JUST)),
        "queued",
        "queued",
        "Submitted to the queue",
    ),
    ("Kueue is down", WISH, Observation(job=SUSPENDED), "blocked", "not_in_queue", "has not processed its job"),
    (
        "waits for quota",
        WISH,
        Observation(SUSPENDED, pending(NEEDED), position=1),
        "queued",
        "waiting_for_quota",
        "2 units of A100 are missing",
    ),
    (
        "over the maximum",
        WISH,
        Observation(SUSPENDED, pending(OVER)),
        "blocked",
        "exceeds_maximum",
        "may use at most 1 now",
    ),
    (
        "no node fits",
        WISH,
        Observation(SUSPENDED, pending('topology "gpu-portal" doesn\'t allow to fit any of 1 pod(s). Total nodes: 2')),
        "queued",
        "no_node_fits",
        "No single node has 2 units of A100 free",
    ),
    (
        "own class held",
        WISH,
        Observation(SUSPENDED, pending("untolerated taint {gpu-portal/held  NoSchedule <nil>} in flavor a100-1")),
        "queued",
        "class_held",
        "Scheduling of A100 was resumed just now",
    ),
    (
        "own class held, as its row says",
        replace(WISH, hold="A100 is held since 09:10 for a driver update."),
        Observation(SUSPENDED, pending(NEEDED)),
        "queued",
        "class_held",
        "A100 is held since 09:10 for a driver update.",
    ),
    (
        "another class held",
        WISH,
        Observation(
            SUSPENDED, pending(f"untolerated taint {{gpu-portal/held  NoSchedule}} in flavor h100-1, {NEEDED}")
        ),
        "queued",
        "waiting_for_quota",
        "2 units of A100 are missing",
    ),
    (
        "queue held",
        WISH,
        Observation(SUSPENDED, pending("ClusterQueue team-a is inactive")),
        "queued",
        "queue_held",
        "is paused",
    ),
    (
        "unknown words",
        WISH,
        Observation(SUSPENDED, pending("something new")),
        "queued",
        "queued",
        "Kueue reports: something new",
    ),
    (
        "preempted",
        WISH,
        Observation(
            SUSPENDED,
            queue(
                condition("QuotaReserved", true=False, message=NEEDED),
                condition("Preempted", message="Preempted to accommodate a workload"),
                condition("Evicted", reason="Preempted"),
                preemptions=1,
            ),
        ),
        "queued",
        "preempted",
        "Preempted",
    ),
    ("admitted", WISH, Observation(job(), ADMITTED), "preparing", "creating_pod", "Admitted"),
    (
        "predecessor still ending",
        WISH,
        Observation(job(), ADMITTED, warnings=(warning("Job", "FailedCreate", EXCEEDED),)),
        "preparing",
        "quota_full",
        "nvidia.com/gpu: 2 requested, 4 of 4 used",
    ),
    (
        "an old refusal",
        WISH,
        Observation(job(), ADMITTED, warnings=(warning("Job", "FailedCreate", EXCEEDED, last_at=AGO - timedelta(1)),)),
        "preparing",
        "creating_pod",
        "Admitted",
    ),
    (
        "Pod Security",
        WISH,
        Observation(
            job(), ADMITTED, warnings=(warning("Job", "FailedCreate", 'violates PodSecurity "restricted:latest"'),)
        ),
        "blocked",
        "pod_security",
        "Pod Security",
    ),
    (
        "unschedulable",
        WISH,
        Observation(job(), ADMITTED, (pod(UNSCHEDULABLE),)),
        "blocked",
        "no_node_fits",
        "3 have too little nvidia.com/gpu free",
    ),
    (
        "just unschedulable",
        WISH,
        Observation(job(), ADMITTED, (pod(UNSCHEDULABLE, created_at=JUST),)),
        "preparing",
        "no_node_fits",
        "",
    ),
    (
        "volume",
        WISH,
        Observation(job(), ADMITTED, (pod(UNBOUND),)),
        "blocked",
        "volume_unbound",
        "Waiting for the volume",
    ),
    (
        "image",
        WISH,
        Observation(
            job(), ADMITTED, (pod(BOUND, state="waiting", reason="ImagePullBackOff", message="not found", node="n"),)
        ),
        "blocked",
        "image_not_found",
        "The image minimal:1 was not found",
    ),
    (
        "image on its way",
        WISH,
        Observation(job(), ADMITTED, (pod(BOUND, state="waiting", reason="ContainerCreating", node="n"),)),
        "preparing",
        "preparing",
        "pulling the image",
    ),
    (
        "secret follows",
        WISH,
        Observation(
            job(),
            ADMITTED,
            (
                pod(
                    replace(BOUND, since=JUST),
                    state="waiting",
                    reason="CreateContainerConfigError",
                    message='secret "x" not found',
                    node="n",
                ),
            ),
        ),
        "preparing",
        "preparing",
        "",
    ),
    ("starting", WISH, Observation(job(), ADMITTED, (RUNNING,)), "starting", "starting", "JupyterLab is starting"),
    ("ready", replace(WISH, ready_at=AGO), Observation(job(), ADMITTED, (READY,)), "ready", "ready", "Ready on a100-1"),
    ("ready, not recorded", WISH, Observation(job(), ADMITTED, (READY,)), "starting", "starting", "opens in a moment"),
    (
        "not answering",
        replace(WISH, ready_at=AGO),
        Observation(job(), ADMITTED, (RUNNING,)),
        "starting",
        "starting",
        "is not responding",
    ),
    (
        "a job",
        replace(WISH, kind="job"),
        Observation(job(), ADMITTED, (RUNNING,)),
        "running",
        "running",
        "Running on a100-1",
    ),
    (
        "out of memory",
        WISH,
        Observation(
            job(),
            ADMITTED,
            (pod(BOUND, state="terminated", reason="OOMKilled", exit_code=137, phase="Failed", node="n"),),
        ),
        "failed",
        "out_of_memory",
        "not GPU memory",
    ),
    (
        "crashed",
        WISH,
        Observation(
            job(), ADMITTED, (pod(BOUND, state="terminated", reason="Error", exit_code=3, phase="Failed", node="n"),)
        ),
        "failed",
        "crashed",
        "exit code 3",
    ),
    (
        "stopping",
        replace(WISH, stop_requested_at=NOW),
        Observation(job(), ADMITTED, (READY,)),
        "stopping",
        "stopping",
        "released",
    ),
    (
        "stopping, admitted without a pod",
        replace(WISH, stop_requested_at=NOW),
        Observation(job(), ADMITTED),
        "stopping",
        "stopping",
        "released when its job is deleted",
    ),
    (
        "stopping, from the queue",
        replace(WISH, stop_requested_at=NOW),
        Observation(SUSPENDED, pending(NEEDED)),
        "stopping",
        "stopping",
        "it uses no units any more",
    ),
    ("stopping, blind", replace(WISH, stop_requested_at=NOW), None, "stopping", "stopping", "has not confirmed"),
    (
        "deleting",
        replace(WISH, is_deleting=True),
        Observation(job(), ADMITTED, (READY,)),
        "stopping",
        "stopping",
        "Being deleted",
    ),
    (
        "stopped",
        replace(WISH, ended_at=NOW, outcome="stopped", message="Stopped."),
        None,
        "stopped",
        "stopped",
        "Stopped.",
    ),
    (
        "lost",
        replace(WISH, ended_at=NOW, outcome="lost", reason="job_deleted"),
        Observation(),
        "failed",
        "job_deleted",
        "",
    ),
]


@pytest.mark.parametrize(
    ("wish", "seen", "phase", "reason", "words"), [case[1:] for case in CASES], ids=[c[0] for c in CASES]
)
def test_status(wish: DesiredRun | None, seen: Observation | None, phase: str, reason: str, words: str) -> None:
    found = status_of(wish, seen, now=NOW)
    assert (str(found.phase), found.reason) == (phase, reason)
    assert words in found.sentence


KILLED = pod(phase="Failed", state="terminated", reason="Error", exit_code=137)


@pytest.mark.parametrize(
    ("kind", "seen", "outcome", "reason", "exit_code"),
    [
        ("job", Observation(job(condition("Complete")), pods=(pod(phase="Succeeded"),)), "succeeded", "completed", 0),
        (
            "notebook",
            Observation(job(condition("Complete")), pods=(pod(phase="Succeeded"),)),
            "stopped",
            "shut_down",
            0,
        ),
        (
            "job",
            Observation(
                job(condition("Failed")), pods=(pod(phase="Failed", state="terminated", reason="Error", exit_code=3),)
            ),
            "failed",
            "crashed",
            3,
        ),
        ("job", Observation(job(condition("Failed", message="backoff"))), "failed", "failed", None),
        (
            "job",
            Observation(job(condition("Failed"), suspend=True), pods=(KILLED,)),
            "stopped",
            "units_taken_back",
            137,
        ),
        ("job", Observation(job(condition("Failed"), suspend=True)), "stopped", "units_taken_back", None),
        ("job", Observation(job(condition("Failed")), pods=(KILLED,)), "failed", "killed", 137),
        # Decided while the Job was suspended, and reported when the queue resumed it, or not yet.
        ("job", Observation(job(condition("FailureTarget"), suspend=True)), "stopped", "units_taken_back", None),
        (
            "job",
            Observation(job(condition("Failed"), condition("FailureTarget"), started_at=AGO + timedelta(seconds=1))),
            "stopped",
            "units_taken_back",
            None,
        ),
        (
            "job",
            Observation(job(condition("Failed"), condition("FailureTarget"), started_at=AGO)),
            "failed",
            "failed",
            None,
        ),
    ],
)
def test_endings(kind: str, seen: Observation, outcome: str, reason: str, exit_code: int | None) -> None:
    found = status_outcome.outcome_of(seen, kind=kind)
    assert found is not None
    assert (found.outcome, found.reason, found.exit_code, found.at) == (outcome, reason, exit_code, AGO)


def test_what_runs_has_no_ending() -> None:
    assert status_outcome.outcome_of(Observation(job(), ADMITTED, (READY,)), kind="notebook") is None
    assert (
        status_outcome.outcome_of(Observation(job(condition("FailureTarget")), ADMITTED, (KILLED,)), kind="job") is None
    )
    assert status_outcome.outcome_of(Observation(), kind="notebook") is None


def test_every_phase_has_its_word_and_icon() -> None:
    from portal.ui.statuses import STATUSES

    assert {str(phase) for phase in Phase} <= STATUSES.keys()
    assert Status(Phase.READY, "", "", None).actions == ()
