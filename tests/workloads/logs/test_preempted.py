"""The log of a preempted run is kept while its pods end; the log of the next attempt replaces it."""

from __future__ import annotations

import pytest

from accounts.core.actor import Actor
from accounts.models import User
from catalog.models import GpuClass
from cluster.models import AppliedObject, Cluster
from portal.core.due import Deadline
from tenants.models import Namespace, Tenant
from tests.support.rows import make, mirrored, running
from tests.support.rows.interruptions import asked, condition, queue_says
from tests.workloads.logs.node import Node
from workloads.logs.models import RunLog
from workloads.logs.queries import KeptLog, kept_log
from workloads.models import Run, Workload
from workloads.runs.reconcile import reconcile

pytestmark = pytest.mark.django_db


def test_it_is_read_when_the_run_loses_its_units(
    team_a: Tenant, namespace_a: Namespace, a100: GpuClass, alice: User, cluster: Cluster
) -> None:
    mirrored.hardware_seen(cluster)
    make.grant(team_a, a100, units=4)
    run = asked(namespace_a, a100, alice)
    running.pod_of(run.workload, uid="first")
    sent = {"owner": f"workloads.workload.{run.workload_id}", "namespace": namespace_a.name, "name": "train-1"}
    uid = f"job-{run.workload_id}"
    AppliedObject.objects.create(cluster_id=a100.cluster_id, kind="Job", uid=uid, result="applied", **sent)
    Workload.objects.update(observed_generation=1)
    node = Node(b"epoch 1\n")

    def look() -> None:
        reconcile(Workload.objects.get(), Deadline(), kube=node)  # type: ignore[arg-type]

    queue_says(run, condition("Admitted", "True"), preemptions=0)
    look()
    assert (node.asked, RunLog.objects.count()) == (0, 0)
    queue_says(run, condition("Admitted", "False"), preemptions=0)
    look()
    look()
    assert node.asked == 1
    assert Run.objects.get().ended_at is None
    found = kept_log(Actor(alice, "stream"), "team-a", "train")
    assert isinstance(found, KeptLog)
    assert found.text == "epoch 1\n"
