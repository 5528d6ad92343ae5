"""What a job may request. Tables: facts in; code, field and numbers out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.workloads.launch.facts import A100, ALICE, TEAM
from workloads.core.policy import ClassFacts
from workloads.launch import policy
from workloads.launch.options import Options
from workloads.launch.types import LaunchSpec

EIGHT = replace(A100, granted=8)
JOB = LaunchSpec(name="train", kind="job", gpu_class="a100", units=1, image="python")
NOTEBOOK = replace(JOB, kind="notebook", name="one")
BORROWS = replace(EIGHT, borrowing_limit=4)


def said(found: ClassFacts, wanted: LaunchSpec, *, role: str = "member") -> tuple[str, str | None, str]:
    refusal = policy.may_launch(ALICE, replace(TEAM, role=role), found, wanted)
    return (refusal.code, refusal.field, refusal.message) if refusal else ("", None, "")


def job(**options: Any) -> LaunchSpec:
    return replace(JOB, options=Options(**options))


@pytest.mark.parametrize(
    ("found", "units", "workers", "code", "field", "words"),
    [
        (EIGHT, 2, 4, "", None, ""),
        (EIGHT, 2, 5, "exceeds_grant", "workers", "5 workers × 2 = 10 of A100 requested; your team can use at most 8"),
        (BORROWS, 2, 6, "", None, ""),
        (
            BORROWS,
            2,
            7,
            "exceeds_grant",
            "workers",
            "7 workers × 2 = 14 of A100 requested; your team can use at most 12",
        ),
        # Each worker has to fit on one node; all workers together do not.
        (EIGHT, 4, 2, "", None, ""),
        (
            replace(EIGHT, granted=20),
            5,
            2,
            "exceeds_node",
            "units",
            "5 of A100 requested for each worker, but no node has",
        ),
        (replace(EIGHT, granted=40), 9, 2, "too_many_units", "units", "the limit is 8 per worker"),
        (replace(EIGHT, units_per_workload=1), 1, 8, "", None, ""),
        (replace(EIGHT, granted=400), 1, 256, "", None, ""),
        (replace(EIGHT, granted=400), 1, 257, "bad_workers", "workers", "1 to 256 workers, not 257"),
        (EIGHT, 1, 0, "bad_workers", "workers", "workers, not 0."),
        (EIGHT, 1, -1, "bad_workers", "workers", "workers, not -1."),
    ],
)
def test_a_gang_fits_into_the_grant_whole_and_each_worker_on_a_node(
    found: ClassFacts, units: int, workers: int, code: str, field: str | None, words: str
) -> None:
    options = Options(workers=workers, checkpoints=True)
    refusal = said(found, replace(JOB, units=units, options=options))
    assert refusal[:2] == (code, field)
    assert words in refusal[2]


@pytest.mark.parametrize(
    ("wanted", "code", "field"),
    [
        (job(script="echo", workers=2), "", None),
        (replace(job(script="echo"), command=("ls",)), "command_and_script", "script"),
        (job(script="x" * 20_000), "", None),
        (job(script="x" * 20_001), "bad_script", "script"),
        (job(script="a\0b"), "bad_script", "script"),
        (job(retries=10), "", None),
        (job(retries=11), "bad_retries", "retries"),
        (job(retries=-1), "bad_retries", "retries"),
        (job(priority="urgent"), "bad_priority", "priority"),
        (job(priority="batch"), "", None),
        (replace(job(workers=2), name="3d"), "bad_name", "name"),
        (replace(job(), name="3d"), "", None),
        (job(workers=2, env=(("RANK", "0"),)), "forbidden_variable", "env"),
        (job(workers=2, secrets=("MASTER_ADDR",)), "forbidden_variable", "secrets"),
        (job(env=(("RANK", "0"),)), "", None),
        (replace(NOTEBOOK, options=Options(workers=2)), "jobs_only", "workers"),
        (replace(JOB, visibility="team"), "notebooks_only", "visibility"),
        (replace(NOTEBOOK, options=Options(script="ls")), "jobs_only", "script"),
        (replace(NOTEBOOK, options=Options(retries=1)), "jobs_only", "retries"),
        (replace(NOTEBOOK, options=Options(workers=1, retries=0, checkpoints=True)), "", None),
    ],
)
def test_the_shape_of_what_was_typed(wanted: LaunchSpec, code: str, field: str | None) -> None:
    assert said(EIGHT, wanted)[:2] == (code, field)


@pytest.mark.parametrize(
    ("kind", "priority", "role", "units", "code"),
    [
        ("job", "interactive", "member", 1, "priority_not_allowed"),
        ("job", "production", "member", 1, "priority_not_allowed"),
        ("job", "interactive", "manager", 1, ""),
        ("job", "production", "manager", 1, ""),
        ("job", "production", "owner", 4, ""),
        ("job", "production", "owner", 5, "priority_beyond_grant"),
        ("job", "interactive", "owner", 5, ""),
        ("notebook", "interactive", "member", 1, ""),
        ("notebook", "batch", "member", 1, ""),
        ("notebook", "production", "member", 1, "priority_not_allowed"),
    ],
)
def test_owners_and_managers_let_work_go_first_and_production_keeps_to_the_grant(
    kind: str, priority: str, role: str, units: int, code: str
) -> None:
    found = replace(A100, granted=4, borrowing_limit=4, node_units=8)
    wanted = replace(JOB, kind=kind, units=units, options=Options(priority=priority, checkpoints=True))
    refusal = said(found, wanted, role=role)
    assert refusal[:2] == (code, "priority" if code else None)


def test_workers_count_for_production_too() -> None:
    found = replace(EIGHT, borrowing_limit=8)
    wanted = replace(JOB, units=2, options=Options(workers=5, priority="production", checkpoints=True))
    assert said(found, wanted, role="owner")[2].startswith(
        "Production priority is limited to the team's quota: 10 of A100"
    )


def test_where_a_job_may_be_interrupted_who_asks_says_that_it_checkpoints() -> None:
    refusal = said(BORROWS, JOB)
    assert refusal[:2] == ("checkpoints_not_confirmed", "checkpoints")
    assert "can run on borrowed units and are preempted when the lender reclaims them" in refusal[2]
    assert said(BORROWS, job(checkpoints=True)) == ("", None, "")
    assert said(EIGHT, JOB) == ("", None, "")
    assert said(BORROWS, NOTEBOOK) == ("", None, "")


SPOT = replace(EIGHT, is_spot=True)


@pytest.mark.parametrize(
    ("found", "wanted", "code", "field"),
    [
        (SPOT, JOB, "checkpoints_not_confirmed", "checkpoints"),
        (SPOT, job(checkpoints=True), "", None),
        (SPOT, NOTEBOOK, "interruption_not_accepted", "accepts_interruption"),
        # A notebook writes no checkpoints, whatever is sent.
        (
            SPOT,
            replace(NOTEBOOK, options=Options(checkpoints=True)),
            "interruption_not_accepted",
            "accepts_interruption",
        ),
        (SPOT, replace(NOTEBOOK, options=Options(accepts_interruption=True)), "", None),
        (SPOT, job(accepts_interruption=True), "notebooks_only", "accepts_interruption"),
        (EIGHT, NOTEBOOK, "", None),
        (EIGHT, replace(NOTEBOOK, options=Options(accepts_interruption=True)), "", None),
    ],
)
def test_spot_nodes_are_for_runs_that_may_be_interrupted(
    found: ClassFacts, wanted: LaunchSpec, code: str, field: str | None
) -> None:
    refusal = said(found, wanted)
    assert refusal[:2] == (code, field)
    assert ("choose a class without spot nodes" in refusal[2]) is (
        code in ("checkpoints_not_confirmed", "interruption_not_accepted")
    )


def test_what_was_said_is_kept_and_what_was_not_is_left_out() -> None:
    whole = Options(workers=4, script="ls", priority="production", retries=3, checkpoints=True)
    assert whole.to_json() == {
        "workers": 4, "script": "ls", "priority": "production", "retries": 3, "checkpoints": True
    }  # fmt: skip
    assert Options.from_json(whole.to_json()) == whole
    assert Options(workers=1, retries=0, checkpoints=False).to_json() == {}
