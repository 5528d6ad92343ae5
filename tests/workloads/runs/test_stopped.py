"""A job that is deleted while it runs exits with 137: the order of events decides between failed and stopped."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from django.utils import timezone

from accounts.models import User
from catalog.models import GpuClass
from cluster.client.kube import Kube
from cluster.models import MirrorJob, MirrorPod
from portal.core.due import Deadline
from tenants.models import Namespace
from tests.support.rows import running
from workloads.models import Run, Workload
from workloads.runs.reconcile import reconcile

STOP = timezone.now().replace(microsecond=600_000)


@pytest.fixture
def asked_to_stop(namespace_a: Namespace, a100: GpuClass, alice: User) -> Workload:
    """A running run that was asked to stop; no worker has looked since."""
    found = running.workload(namespace_a, a100, by=alice, kind="job")
    running.make_ready(found)
    Run.objects.update(stop_requested_at=STOP)
    return found


def fail(at: datetime) -> None:
    """Fails the Job as the cluster reports it: its times are whole seconds."""
    told = at.replace(microsecond=0).isoformat()
    job, pod = MirrorJob.objects.get(), MirrorPod.objects.get()
    job.record["conditions"] = [
        {"type": "Failed", "status": "True", "reason": "PodFailurePolicy", "message": "", "since": told}
    ]
    job.save()
    pod.phase = "Failed"
    pod.record["containers"][0] |= {"state": "terminated", "reason": "Error", "exit_code": 137, "ended_at": told}
    pod.save()


@pytest.mark.parametrize(
    ("since_stop", "outcome", "message"),
    [
        (timedelta(seconds=-3), "failed", "It was killed (signal 9, exit code 137); the cluster reports no cause."),
        (timedelta(seconds=0.1), "stopped", "Stopped."),
        (timedelta(seconds=3), "stopped", "Stopped."),
    ],
)
def test_what_ends_after_the_stop_was_stopped(
    asked_to_stop: Workload, kube_worker: Kube, since_stop: timedelta, outcome: str, message: str
) -> None:
    fail(STOP + since_stop)
    reconcile(asked_to_stop, Deadline(), kube=kube_worker)
    run = Run.objects.get()
    assert (run.outcome, run.message) == (outcome, message)
    assert run.ended_at is not None
