"""(rows, what was seen) → the steps of a run."""

from __future__ import annotations

from dataclasses import replace

from tests.workloads.test_phase import ADMITTED, AGO, NEEDED, NOW, READY, SUSPENDED, UNBOUND, WISH, job, pending, pod
from workloads import progress
from workloads.phase import Wish, status
from workloads.seen import Seen


def titles(wish: Wish, seen: Seen | None) -> list[tuple[str, str]]:
    return [(step.title, step.state) for step in progress.steps(wish, seen, status(wish, seen, now=NOW))]


def test_steps_of_a_notebook_that_waits() -> None:
    seen = Seen(SUSPENDED, pending(NEEDED), position=1)
    assert titles(WISH, seen) == [
        ("Requested", "done"),
        ("Queued", "busy"),
        ("Node assigned", "next"),
        ("Image", "next"),
        ("Starting", "next"),
        ("Ready", "next"),
    ]
    told = progress.steps(WISH, seen, status(WISH, seen, now=NOW))[1]
    assert told.note.startswith("2nd in your team's queue. Waits for 2 units")
    assert (told.raw, told.raw_from) == (NEEDED, "Kueue")


def test_steps_stand_still_where_the_volume_is_missing() -> None:
    wish = replace(WISH, has_volume=True)
    seen = Seen(job(), ADMITTED, (pod(UNBOUND),))
    assert titles(wish, seen)[:4] == [
        ("Requested", "done"),
        ("Queued", "done"),
        ("Node assigned", "stuck"),
        ("Storage", "next"),
    ]


def test_steps_of_a_notebook_that_is_ready_and_of_one_that_was_stopped() -> None:
    assert {state for _title, state in titles(replace(WISH, ready_at=AGO), Seen(job(), ADMITTED, (READY,)))} == {"done"}
    stopped = replace(WISH, admitted_at=AGO, started_at=AGO, ready_at=AGO, ended_at=NOW, outcome="stopped")
    assert titles(stopped, Seen())[-1] == ("Stopped", "done")
    early = replace(WISH, ended_at=NOW, outcome="stopped")
    assert titles(early, Seen())[1:3] == [("Queued", "next"), ("Node assigned", "next")]


def test_a_failed_run_shows_where_it_got_stuck() -> None:
    failed = replace(
        WISH, kind="job", admitted_at=AGO, started_at=AGO, ended_at=NOW, outcome="failed", message="exit 1"
    )
    assert titles(failed, Seen())[-1] == ("Ended", "stuck")
