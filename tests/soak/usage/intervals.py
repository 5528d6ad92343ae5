"""Allocation intervals equal the times of Kueue's conditions to the second, although workers are killed meanwhile."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any

import psycopg

from tests.load.usage.admissions import Admissions, Period
from tests.load.usage.running_demo import RunningDemo
from tests.support.waiting import wait_until

SCENARIO = "waste"


def test_intervals_equal_kueues_times_though_workers_are_killed(demo: RunningDemo, say: Callable[[str], None]) -> None:
    """The worker is dead while Kueue preempts a job, while it admits it again, and while the job ends."""
    team = "team=lab"
    demo.call("Bob", "POST", f"workloads/mask-review/stop?{team}")
    _until(demo, lambda: demo.job("lab", "mask-review-1") is None, "a unit is free")
    with Admissions(demo.admin, "lab", "train") as admissions:
        job = {"kind": "job", "units": 1, "image": "PyTorch", "command": ["python", "train.py"]}
        job["gpu_class"] = demo.get("Bob", "classes")["items"][0]["slug"]
        demo.call("Bob", "POST", f"workloads?{team}", job | {"name": "train", "options": {"checkpoints": True}})
        _until_told(demo, lambda: _held_s(admissions) > 5 and _phase(demo, "train") == "running", "it runs")

        demo.call("Bob", "POST", f"workloads?{team}", job | {"name": "urgent", "options": {"priority": "production"}})
        _until(demo, lambda: demo.job("lab", "urgent-1"), "the urgent job is in the cluster")
        demo.kill("worker")
        _until(demo, lambda: not admissions.is_held, "it is preempted")
        _until(demo, lambda: demo.admitted_at("lab", "urgent-1"), "the urgent job has its unit")
        demo.revive("worker")
        _until_told(demo, lambda: admissions.is_waiting and _phase(demo, "train") == "queued", "it is queued again")

        demo.call("Bob", "POST", f"workloads/urgent/stop?{team}")
        _until(demo, lambda: _is_leaving(demo, "urgent-1"), "the urgent job is deleted")
        demo.kill("worker")
        _until(demo, lambda: _held_s(admissions) > 5, "it is admitted again, and holds its unit for some seconds")
        demo.revive("worker")
        _until_told(demo, lambda: _phase(demo, "train") == "running", "it runs again")

        last = f"train-{_run(demo, 'train')['number']}"
        demo.call("Bob", "POST", f"workloads/train/stop?{team}")
        _until(demo, lambda: _is_leaving(demo, last), "it is deleted")
        demo.kill("worker")
        _until(demo, lambda: not admissions.is_held, "it has no unit")
        demo.revive("worker")
        _until_told(demo, lambda: _run(demo, "train")["ended_at"], "it has ended")
        # An end that was recorded before Kueue's was seen is corrected within a minute.
        _until(demo, lambda: _intervals(demo, "train") == _exact(admissions.periods), "equal intervals")
    seconds = sum((end - start).total_seconds() for start, end in admissions.periods if end)
    assert len(admissions.periods) >= 2
    assert seconds > 10
    say(
        f"3 workers killed; {len(admissions.periods)} intervals in {admissions.jobs} Jobs, {seconds:.0f} s in all, "
        "each as Kueue's conditions say"
    )


def _until(demo: RunningDemo, is_so: Callable[[], object], what: str) -> None:
    """Often, so that a kill comes soon after what it is to follow. A dead worker's lease ends after a minute."""
    wait_until(is_so, within_s=240, every_s=0.05, what=what, story=lambda: demo.queue_story("lab"))


def _until_told(demo: RunningDemo, is_so: Callable[[], object], what: str) -> None:
    """By the API, which a token may call ten times a second."""
    wait_until(is_so, within_s=240, every_s=0.5, what=what, story=lambda: demo.queue_story("lab"))


def _run(demo: RunningDemo, name: str) -> dict[str, Any]:
    found = demo.get("Bob", f"workloads/{name}?team=lab")
    return {**found["run"], "phase": found["status"]["phase"]}


def _phase(demo: RunningDemo, name: str) -> str:
    return str(_run(demo, name)["phase"])


def _held_s(admissions: Admissions) -> float:
    """Since its last admission; 0 if it holds nothing."""
    return time.time() - admissions.periods[-1][0].timestamp() if admissions.is_held else 0


def _exact(periods: Iterable[Period]) -> list[tuple[datetime, datetime | None, bool]]:
    return [(*one, True) for one in periods]


def _is_leaving(demo: RunningDemo, job: str) -> bool:
    found = demo.job("lab", job)
    return found is None or "deletionTimestamp" in found["metadata"]


def _intervals(demo: RunningDemo, name: str) -> list[tuple[datetime, datetime | None, bool]]:
    """As the rows have them."""
    with psycopg.connect(demo.database_url) as connection:
        return list(connection.execute(_INTERVALS, [name]))


_INTERVALS = """
SELECT held.starts_at, held.ends_at, held.is_exact
  FROM workloads_allocationinterval held
  JOIN workloads_run run ON run.id = held.run_id
  JOIN workloads_workload workload ON workload.id = run.workload_id
 WHERE workload.name = %s ORDER BY held.starts_at"""
