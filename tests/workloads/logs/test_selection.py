"""Whose logs are kept."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from cluster.manifests.workers import COMPLETION_INDEX
from cluster.reads.observed import Container, Pod
from workloads.logs.selection import LOGS_PER_RUN, LogPlace, logs_to_keep

NOW = datetime(2027, 1, 1, tzinfo=UTC)


def pod(index: int, *, phase: str = "Running", state: str = "running", attempt: int = 0) -> Pod:
    main = Container("main", True, 0, state, "", "", NOW, 1 if phase == "Failed" else None, NOW, "", None)
    return Pod(
        namespace="a",
        name=f"one-1-{index}-{attempt}",
        uid=f"{index}-{attempt}",
        owner="o",
        created_at=NOW + timedelta(seconds=attempt),
        deleting_since=None,
        phase=phase,
        node="n",
        run="one-1",
        gpu_class="a",
        requests={},
        labels={COMPLETION_INDEX: str(index)},
        containers=(main,),
    )


def test_failed_workers_come_first_and_the_number_is_bounded() -> None:
    pods = [pod(index, phase="Failed" if index in (30, 200) else "Running") for index in range(256)]
    found = [place.worker for place in logs_to_keep(pods)]
    assert len(found) == LOGS_PER_RUN
    assert set(found[:2]) == {30, 200}
    assert found[2:] == [0, 1, 2, 3, 4, 5]


def test_of_a_worker_the_last_container_that_started_is_read() -> None:
    pods = [pod(0, phase="Failed", attempt=0), pod(0, attempt=1), pod(0, state="waiting", attempt=2)]
    assert logs_to_keep(pods) == (LogPlace(0, "one-1-0-1", "main"),)
    assert logs_to_keep([pod(0, state="waiting")]) == (LogPlace(0, "one-1-0-0", ""),)
    assert logs_to_keep([]) == ()
