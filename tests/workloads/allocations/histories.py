"""Histories of a Kueue Workload: what the API server shows of it, state by state, and from when to when it was admitted
by that.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.cluster.mirror.items import Item, removed, seen

JOB_UID = "uid-of-the-job"
# Long enough ago for the longest history, and not so long that the watcher forgets it.
START = datetime.now(UTC).replace(microsecond=0) - timedelta(hours=20)


@dataclass(frozen=True)
class Period:
    starts_at: datetime
    ends_at: datetime | None
    reason: str


@dataclass(frozen=True)
class History:
    """`steps`: (seconds since the step before, what happens). What: "admit", the reason of an eviction, "Finished",
    "Deleted".
    """

    steps: Sequence[tuple[int, str]]

    def items(self, *, uid: str = "queued-1") -> list[Item]:
        """One message of the watch for each step, after one of the Workload that was just created."""
        conditions: dict[str, dict[str, Any]] = {}
        found = seen(_workload(uid, 100, conditions), kind="Workload")
        at = START
        for number, (seconds, what) in enumerate(self.steps):
            at += timedelta(seconds=seconds)
            version = 101 + number
            if what == "Deleted":
                found += removed(_workload(uid, version, conditions, deleted_at=at), kind="Workload")
                continue
            if what == "Finished":
                _set(conditions, "Finished", "True", at, "Succeeded")
            elif what == "admit":
                _set(conditions, "QuotaReserved", "True", at, "QuotaReserved")
                _set(conditions, "Admitted", "True", at, "Admitted")
                if "Evicted" in conditions:
                    _set(conditions, "Evicted", "False", at, "QuotaReserved")
            else:
                _set(conditions, "Evicted", "True", at, what)
                _set(conditions, "QuotaReserved", "False", at, "Pending")
                _set(conditions, "Admitted", "False", at, "NoReservation")
            found += seen(_workload(uid, version, conditions), kind="Workload")
        return found

    def periods(self) -> list[Period]:
        """From the steps alone: nothing of this is read from conditions."""
        found: list[Period] = []
        begun: datetime | None = None
        at = START
        for seconds, what in self.steps:
            at += timedelta(seconds=seconds)
            if what == "admit":
                begun = at
            elif begun is not None:
                found.append(Period(begun, at, what))
                begun = None
        return [*found, Period(begun, None, "")] if begun is not None else found


def total_s(periods: Iterable[Period], *, at: datetime) -> float:
    return sum(((one.ends_at or at) - one.starts_at).total_seconds() for one in periods)


def _set(conditions: dict[str, dict[str, Any]], type_: str, status: str, at: datetime, reason: str) -> None:
    since = at if conditions.get(type_, {}).get("status") != status else conditions[type_]["lastTransitionTime"]
    text = since if isinstance(since, str) else f"{since:%Y-%m-%dT%H:%M:%SZ}"
    conditions[type_] = {"type": type_, "status": status, "reason": reason, "lastTransitionTime": text}


def _workload(
    uid: str, version: int, conditions: dict[str, dict[str, Any]], *, deleted_at: datetime | None = None
) -> dict[str, Any]:
    is_admitted = conditions.get("Admitted", {}).get("status") == "True"
    flavors = {"cpu": "default", "nvidia.com/gpu": "a100-1f2e"}
    admission = {"podSetAssignments": [{"name": "main", "count": 1, "flavors": flavors}]} if is_admitted else None
    return {
        "metadata": {
            "name": f"job-{uid}",
            "namespace": "team-a",
            "uid": uid,
            "resourceVersion": str(version),
            "creationTimestamp": f"{START:%Y-%m-%dT%H:%M:%SZ}",
            **({"deletionTimestamp": f"{deleted_at:%Y-%m-%dT%H:%M:%SZ}"} if deleted_at else {}),
            "ownerReferences": [{"kind": "Job", "name": "train-1", "uid": JOB_UID, "controller": True}],
        },
        "spec": {"queueName": "gpu-portal"},
        "status": {"conditions": [dict(one) for one in conditions.values()], "admission": admission},
    }
