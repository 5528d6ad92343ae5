"""When a run that leaves its node is queued again: after its pods are gone, and after others with a higher priority."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.db.models import Max
from django.utils import timezone

from accounts.models import User
from catalog.models import GpuClass
from cluster.models import Cluster
from tenants.models import Namespace
from tests.support.rows import make, mirrored
from tests.support.rows.interruptions import asked
from tests.workloads.cases.cluster_objects import READY, condition, job, queue
from workloads.core.observation import Observation
from workloads.models import Run, Workload
from workloads.runs.draining.queries import TOGETHER, that_wait_for, waits_until
from workloads.runs.draining.reconcile import apply_drain

pytestmark = pytest.mark.django_db
INACTIVE = replace(queue(condition("QuotaReserved", true=False)), active=False)


class Queue:
    """The worker's client: notes what it asks of the Workload."""

    def __init__(self) -> None:
        self.asked: list[bool] = []

    def merge(self, kind: str, *, body: dict[str, Any], **_of: str) -> None:
        assert kind == "Workload"
        self.asked.append(body["spec"]["active"])


@pytest.fixture
def runs(cluster: Cluster, namespace_a: Namespace, a100: GpuClass, alice: User) -> dict[str, Run]:
    """That leave their nodes, the highest priority first."""
    mirrored.hardware_seen(cluster)
    found = {name: asked(namespace_a, a100, alice, name=name) for name in ("first", "second", "third")}
    for name, priority in (("first", "production"), ("second", "interactive"), ("third", "batch")):
        Run.objects.filter(pk=found[name].pk).update(priority=priority, drain_requested_at=timezone.now())
    return {name: Run.objects.get(pk=run.pk) for name, run in found.items()}


def moved(run: Run, seen: Observation) -> tuple[list[bool], Any]:
    """What one pass asks of Kueue, and when it looks again."""
    kube: Any = Queue()
    run.refresh_from_db()
    until = apply_drain(run, seen, kube=kube)
    run.refresh_from_db()
    return kube.asked, until


def test_a_run_whose_pod_is_there_has_not_left(runs: dict[str, Run]) -> None:
    """Kueue has its units back as soon as its pod is deleted; on a node that does not respond the pod stays."""
    first = runs["first"]
    ending = replace(READY, deleting_since=timezone.now() - timedelta(hours=9))
    assert moved(first, Observation(job=job(suspend=True), queue=INACTIVE, pods=(ending,))) == ([], None)
    assert first.drained_at is None
    # It has lost its units for another reason meanwhile, and is not taken out of the queue.
    again = replace(INACTIVE, active=True)
    assert moved(first, Observation(job=job(suspend=True), queue=again, pods=(ending,))) == ([], None)
    assert first.drain_requested_at is not None

    over = replace(ending, phase="Failed")
    assert moved(first, Observation(job=job(suspend=True), queue=INACTIVE, pods=(over,))) == ([True], None)
    assert first.drained_at is not None


def test_the_highest_priority_is_queued_first(runs: dict[str, Run]) -> None:
    gone = Observation(job=job(suspend=True), queue=INACTIVE)
    limit = Run.objects.aggregate(last=Max("drain_requested_at"))["last"] + TOGETHER
    asked, until = moved(runs["third"], gone)
    assert (asked, until <= limit) == ([], True)
    assert moved(runs["second"], gone)[0] == []
    assert moved(runs["first"], gone) == ([True], None)
    assert moved(runs["second"], gone)[0] == [], "Kueue does not show yet that it is active"
    Workload.objects.update(due_at=timezone.now() + timedelta(hours=1))
    assert moved(runs["first"], replace(gone, queue=replace(INACTIVE, active=True))) == ([], None)
    assert runs["first"].drain_requested_at is None
    woken = Workload.objects.filter(due_at__lte=timezone.now()).values_list("name", flat=True)
    assert sorted(woken) == ["second", "third"]
    assert moved(runs["third"], gone)[0] == []
    assert moved(runs["second"], gone) == ([True], None)


def test_nobody_waits_for_long_or_for_others(
    runs: dict[str, Run], namespace_a: Namespace, cluster: Cluster, alice: User
) -> None:
    third = runs["third"]
    assert waits_until(runs["first"]) is None
    assert waits_until(third) == max(runs[name].drain_requested_at for name in ("first", "second")) + TOGETHER
    Run.objects.exclude(pk=third.pk).update(drain_requested_at=timezone.now() - TOGETHER)
    assert waits_until(third) is None, "a node that does not respond keeps nobody else"
    Run.objects.exclude(pk=third.pk).update(drain_requested_at=timezone.now(), stop_requested_at=timezone.now())
    assert waits_until(third) is None
    Run.objects.exclude(pk=third.pk).update(stop_requested_at=None, priority="batch")
    assert waits_until(third) is None, "of equal priority nobody is preempted"
    Run.objects.exclude(pk=third.pk).update(priority="production", ended_at=timezone.now(), outcome="stopped")
    assert waits_until(third) is None
    other = asked(namespace_a, make.gpu_class(cluster, slug="h100"), alice, name="elsewhere")
    Run.objects.filter(pk=other.pk).update(priority="production", drain_requested_at=timezone.now())
    assert waits_until(third) is None, "it needs units of another class"
    assert that_wait_for(third) == []
