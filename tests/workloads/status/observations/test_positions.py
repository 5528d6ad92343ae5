"""A team's queue in Kueue's order: with equal priority and second the uid decides, as in Kueue."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from cluster.models import MirrorJob, MirrorWorkload
from workloads.status.observations.positions import queue_positions

pytestmark = pytest.mark.django_db
AT = datetime(2026, 11, 21, 9, tzinfo=UTC)
CLUSTER = 1


@dataclass(frozen=True)
class Waits:
    name: str
    uid: str
    priority: int = 0
    later_s: int = 0
    gpu_class: str = "a100"
    active: bool = True
    condition: str = ""
    namespace: str = "team-a"


def mirrored(waits: Waits) -> None:
    at = AT + timedelta(seconds=waits.later_s)
    common: dict[str, Any] = {
        "cluster_id": CLUSTER, "namespace": waits.namespace, "resource_version": 1, "created_at": at,
    }  # fmt: skip
    labels = {"gpu-portal/class": waits.gpu_class} if waits.gpu_class else {}
    MirrorJob.objects.create(name=waits.name, uid=f"job-{waits.name}", record={"labels": labels}, **common)
    conditions = [{"type": waits.condition, "status": "True", "message": ""}] if waits.condition else []
    record = {"conditions": conditions, "active": waits.active, "priority": waits.priority}
    MirrorWorkload.objects.create(
        name=f"of-{waits.name}", uid=waits.uid, job_uid=f"job-{waits.name}", record=record, **common
    )


@pytest.mark.parametrize(
    ("waits", "expected"),
    [
        # Neither names nor the order of reading decide.
        ([Waits("a", "9"), Waits("b", "1"), Waits("c", "5")], ["b", "c", "a"]),
        # The order of bytes, not of a locale.
        ([Waits("a", "a"), Waits("b", "B"), Waits("c", "-")], ["c", "b", "a"]),
        ([Waits("a", "1", later_s=1), Waits("b", "9")], ["b", "a"]),
        ([Waits("a", "1"), Waits("b", "9", priority=5, later_s=7)], ["b", "a"]),
    ],
    ids=["uid within a second", "uid as bytes", "time first", "priority before all"],
)
def test_the_order_is_kueues(waits: list[Waits], expected: list[str]) -> None:
    for one in waits:
        mirrored(one)
    found = queue_positions(CLUSTER, "team-a")
    assert sorted(found, key=lambda uid: found[uid]) == [f"job-{name}" for name in expected]
    assert sorted(found.values()) == list(range(len(waits)))


@pytest.mark.parametrize(
    "other",
    [
        Waits("other", "1", gpu_class="h100"),
        Waits("other", "1", gpu_class=""),
        Waits("other", "1", namespace="team-b"),
        Waits("other", "1", active=False),
        Waits("other", "1", condition="QuotaReserved"),
        Waits("other", "1", condition="Finished"),
    ],
    ids=["another class", "no class", "another team", "not active", "has its units", "over"],
)
def test_who_is_not_in_this_line_holds_nobody_up(other: Waits) -> None:
    mirrored(other)
    mirrored(Waits("mine", "2"))
    assert queue_positions(CLUSTER, "team-a")["job-mine"] == 0
