"""(rows, observation) → the steps of a run."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from cluster.reads.observed import Pod
from tests.workloads.cases.cluster_objects import (
    ADMITTED,
    AGO,
    BOUND,
    NEEDED,
    NOW,
    READY,
    SUSPENDED,
    UNBOUND,
    WISH,
    condition,
    job,
    pending,
    pod,
    queue,
)
from tests.workloads.cases.problems import cloning, ended
from workloads.core.observation import ImagePresence, NodeTrouble, Observation
from workloads.status import progress
from workloads.status.desired_run import DesiredRun
from workloads.status.phase import status_of


def titles(wish: DesiredRun, seen: Observation | None) -> list[tuple[str, str]]:
    return [(step.title, step.state) for step in progress.progress_steps(wish, seen, status_of(wish, seen, now=NOW))]


def test_steps_of_a_notebook_that_waits() -> None:
    seen = Observation(SUSPENDED, pending(NEEDED), position=1)
    assert titles(WISH, seen) == [
        ("Requested", "done"),
        ("Queued", "busy"),
        ("Node assigned", "next"),
        ("Image", "next"),
        ("Starting", "next"),
        ("Ready", "next"),
    ]
    told = progress.progress_steps(WISH, seen, status_of(WISH, seen, now=NOW))[1]
    assert told.note.startswith("2nd in your team's queue. Waiting for quota: 2 units")
    assert (told.raw, told.raw_from) == (NEEDED, "Kueue")


def test_steps_stand_still_where_the_volume_is_missing() -> None:
    wish = replace(WISH, volume="data")
    seen = Observation(job(), ADMITTED, (pod(UNBOUND),))
    assert titles(wish, seen)[:4] == [
        ("Requested", "done"),
        ("Queued", "done"),
        ("Node assigned", "stuck"),
        ("Storage", "next"),
    ]


def test_steps_of_a_notebook_that_is_ready_and_of_one_that_was_stopped() -> None:
    assert {state for _title, state in titles(replace(WISH, ready_at=AGO), Observation(job(), ADMITTED, (READY,)))} == {
        "done"
    }
    stopped = replace(WISH, admitted_at=AGO, started_at=AGO, ready_at=AGO, ended_at=NOW, outcome="stopped")
    assert titles(stopped, Observation())[-1] == ("Stopped", "done")
    early = replace(WISH, ended_at=NOW, outcome="stopped")
    assert titles(early, Observation())[1:3] == [("Queued", "next"), ("Node assigned", "next")]


def test_a_failed_run_shows_where_it_got_stuck() -> None:
    failed = replace(
        WISH, kind="job", admitted_at=AGO, started_at=AGO, ended_at=NOW, outcome="failed", message="exit 1"
    )
    assert titles(failed, Observation())[-1] == ("Ended", "stuck")


def test_the_repository_is_cloned_between_image_and_start() -> None:
    wish = replace(WISH, has_repository=True)
    before = ["Requested", "Queued", "Node assigned"]

    def states(pod_: Pod) -> dict[str, str]:
        found = dict(titles(wish, Observation(job(), ADMITTED, (pod_,))))
        assert list(found) == [*before, "Image", "Repository", "Starting", "Ready"]
        return {title: state for title, state in found.items() if title not in before}

    waits = {"Starting": "next", "Ready": "next"}
    pulls = cloning("waiting", reason="ContainerCreating", since=None)
    assert states(pulls) == {"Image": "busy", "Repository": "next", **waits}
    assert states(cloning("running")) == {"Image": "done", "Repository": "busy", **waits}
    failed = replace(cloning("terminated", exit_code=128), phase="Failed")
    assert states(failed) == {"Image": "done", "Repository": "stuck", **waits}
    done = cloning("terminated", exit_code=0)
    assert states(done) == {"Image": "done", "Repository": "done", "Starting": "busy", "Ready": "next"}


def test_a_clone_that_failed_is_still_where_it_stopped_when_its_pod_is_gone() -> None:
    ended = replace(
        WISH, has_repository=True, admitted_at=AGO, ended_at=NOW, outcome="failed", reason="repository_private",
        message="It wants a sign-in.",
    )  # fmt: skip
    assert ("Repository", "stuck") in titles(ended, Observation())


def test_image_tells_its_size_and_where_it_is() -> None:
    on_three = ImagePresence(4300, frozenset({"a100-1", "a100-2", "a100-3"}))
    waits = Observation(SUSPENDED, pending(NEEDED), image=on_three)
    assert note(WISH, waits, "Image") == "4.2 GiB, already on 3 nodes"
    assert note(WISH, replace(waits, image=ImagePresence(40, frozenset({"a100-1"}))), "Image") == (
        "40 MiB, already on 1 node"
    )
    assert note(WISH, replace(waits, image=ImagePresence()), "Image") == ""
    creating = pod(BOUND, state="waiting", reason="ContainerCreating", node="a100-2", since=None)
    here = Observation(job(), ADMITTED, (creating,), image=on_three)
    assert note(WISH, here, "Image").endswith("preparing the container. 4.2 GiB, already on a100-2.")


def test_a_second_try_says_why_the_first_ended() -> None:
    first = replace(ended(137).pods[0], conditions=(condition("DisruptionTarget", reason="EvictionByEvictionAPI"),))
    second = pod(BOUND, state="running", node="a100-2", phase="Running", uid="second")
    seen = Observation(job(), ADMITTED, (first, second))
    assert (
        note(WISH, seen, "Node assigned")
        == "a100-2. Attempt 2; previous: It was evicted from node a100-1, as when a node is drained."
    )
    assert status_of(WISH, seen, now=NOW).facts == {"node": "a100-2", "attempts": 2}


def test_a_second_try_has_its_own_times() -> None:
    first = replace(ended(137).pods[0], conditions=(condition("DisruptionTarget", reason="EvictionByEvictionAPI"),))
    second = pod(BOUND, state="running", node="a100-2", phase="Running", uid="second", since=NOW)
    wish = replace(WISH, started_at=AGO, ready_at=AGO)

    def at(*pods: Pod) -> datetime | None:
        seen = Observation(job(), ADMITTED, pods)
        return next(
            step.at
            for step in progress.progress_steps(wish, seen, status_of(wish, seen, now=NOW))
            if step.title == "Image"
        )

    assert (at(second), at(first, second)) == (AGO, NOW)


def test_a_lost_node_is_shown_behind_what_had_happened() -> None:
    wish = replace(WISH, ready_at=AGO)
    seen = Observation(
        job(), ADMITTED, (READY,), lost=NodeTrouble("a100-1", AGO, "NodeStatusUnknown", "Kubelet stopped")
    )
    step = progress.progress_steps(wish, seen, status_of(wish, seen, now=NOW))[-1]
    assert (step.title, step.state) == ("Node", "stuck")
    assert "no longer responds" in step.problem
    assert "gives up on the node" in step.remedy


def note(wish: DesiredRun, seen: Observation, title: str) -> str:
    return next(
        step.note for step in progress.progress_steps(wish, seen, status_of(wish, seen, now=NOW)) if step.title == title
    )


def test_a_run_that_is_queued_again_does_not_report_its_earlier_pod() -> None:
    """Its node evicted the first pod; later the queue took the run back. The pod stays with its Job."""
    evicted = replace(
        pod(BOUND, condition("DisruptionTarget", reason="TerminationByKubelet"), state="terminated", exit_code=137),
        phase="Failed", node="a100-1", reason="Evicted", message="The node was low on resource: memory.",
    )  # fmt: skip
    out = queue(
        condition("QuotaReserved", true=False, message=NEEDED),
        condition("Admitted", true=False),
        condition("Evicted", reason="ClusterQueueStopped"),
        evictions={"ClusterQueueStopped": 1},
    )
    wish = replace(WISH, admitted_at=AGO, started_at=AGO)
    seen = Observation(SUSPENDED, out, (evicted,))
    told = status_of(wish, seen, now=NOW)
    assert (told.phase, told.reason) == ("queued", "waiting_for_quota")
    steps = progress.progress_steps(wish, seen, told)
    assert next(step.title for step in steps if step.state == progress.BUSY) == "Queued"
    admitted = Observation(job(), ADMITTED, (evicted,))
    assert status_of(wish, admitted, now=NOW).reason == "evicted"
