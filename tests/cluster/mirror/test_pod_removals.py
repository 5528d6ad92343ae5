"""What was last seen of our pods that the cluster removed is kept when their rows go."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from cluster.mirror import writer as mirror_module
from cluster.mirror.pod_removals import KEPT
from cluster.mirror.writer import MirrorWriter
from cluster.models import Cluster, PodRemoval
from cluster.reads import queries
from cluster.reads.observed import RemovedPod
from tests.cluster.mirror.items import Raw, listed, removed, seen
from tests.cluster.mirror.scripted_api import pod

OWNER, RUN = "workloads.workload.1", "train-1"
RAN, DRAINED = "2026-11-21T10:00:00Z", "2026-11-21T11:00:00Z"


@pytest.fixture
def mirror(cluster: Cluster) -> MirrorWriter:
    found = MirrorWriter(cluster.pk)
    found.open()
    found.write(listed(10))
    return found


def ours(version: int, name: str = "a", *, owner: str = OWNER, phase: str = "Running", why: str = "") -> Raw:
    """It has run; `why`: the reason of its condition DisruptionTarget."""
    found = pod(name, version, node="n1", phase=phase, owner=owner)
    found["metadata"]["labels"]["gpu-portal/run"] = RUN
    state: Any = {"running": {"startedAt": RAN}}
    if phase == "Failed":
        state = {"terminated": {"startedAt": RAN, "finishedAt": DRAINED, "exitCode": 137, "reason": "Error"}}
    found["status"]["containerStatuses"] = [{"name": "main", "state": state}]
    if why:
        target = {"type": "DisruptionTarget", "status": "True", "reason": why, "message": "evicting"}
        found["status"]["conditions"] = [target | {"lastTransitionTime": DRAINED}]
    return found


def kept(cluster: Cluster) -> list[RemovedPod]:
    return queries.removed_pods(cluster.pk, owner=OWNER, namespace="team-a", run=RUN)


def test_it_is_kept_as_it_was_at_its_deletion(mirror: MirrorWriter, cluster: Cluster) -> None:
    """Its row is of an earlier moment: nothing between was written."""
    mirror.write(seen(ours(11)))
    mirror.write(
        [*seen(ours(12, why="EvictionByEvictionAPI")), *removed(ours(13, phase="Failed", why="EvictionByEvictionAPI"))]
    )
    [found] = kept(cluster)
    assert (found.uid, found.node, found.phase) == ("uid-a", "n1", "Failed")
    assert (found.target.reason, found.target.message) == ("EvictionByEvictionAPI", "evicting")
    assert [at and at.isoformat() for at in (found.target.since, found.ran_since)] == [
        "2026-11-21T11:00:00+00:00", "2026-11-21T10:00:00+00:00",
    ]  # fmt: skip
    assert queries.pods(cluster.pk) == []


def test_one_that_went_while_nobody_watched_is_kept_as_it_was_seen_before(
    mirror: MirrorWriter, cluster: Cluster
) -> None:
    mirror.write(seen(ours(11, why="PreemptionByScheduler"), ours(12, "b")))
    mirror.write(listed(50))
    assert [(one.uid, one.phase, one.target.reason) for one in kept(cluster)] == [
        ("uid-a", "Running", "PreemptionByScheduler")
    ]


def test_pods_that_ended_otherwise_are_not_kept(mirror: MirrorWriter) -> None:
    mirror.write(seen(ours(11), ours(12, "b"), ours(13, "theirs", owner="", why="EvictionByEvictionAPI")))
    mirror.write(removed(ours(21, phase="Failed"), ours(22, "b", phase="Succeeded")))
    mirror.write(removed(ours(23, "theirs", owner="", why="EvictionByEvictionAPI")))
    assert not PodRemoval.objects.exists()


def test_it_outlives_the_mirror_for_a_day(
    mirror: MirrorWriter, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    mirror.write(seen(ours(11)))
    mirror.write(removed(ours(12, phase="Failed", why="EvictionByEvictionAPI")))
    monkeypatch.setattr(mirror_module, "record_format", lambda: "the next one")
    again = MirrorWriter(cluster.pk)
    again.open()
    again.write(listed(50))
    assert len(kept(cluster)) == 1

    PodRemoval.objects.update(removed_at=timezone.now() - KEPT - timedelta(minutes=1))
    again.write(seen(ours(61, "b")))
    again.write(removed(ours(62, "b", phase="Failed", why="EvictionByEvictionAPI")))
    assert [one.uid for one in kept(cluster)] == ["uid-b"]


def test_a_deletion_of_pods_that_were_watched_takes_no_statement_more(mirror: MirrorWriter) -> None:
    """Most pods end with their runs."""
    mirror.write(seen(ours(11), ours(12, "theirs", owner="")))
    with CaptureQueriesContext(connection) as found:
        mirror.write(removed(ours(21, phase="Failed"), ours(22, "theirs", owner="")))
    assert not [one for one in found.captured_queries if re.search(r"podremoval|SELECT.*mirrorpod", one["sql"])]
