"""A watcher notices another cluster, an operator confirms it, and workers follow; the objects are there already."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import pytest

from accounts.core.actor import Actor, system_actor
from cluster.client.kube import Kube
from cluster.models import AppliedObject, Cluster
from cluster.reads import queries as mirror
from desk.installation.moving.actions import confirm_cluster
from devcluster.client.kube import Api
from portal.core.due import Deadline, TryLater
from tenants.models import Namespace, Tenant
from tenants.provisioning import steps
from tests.support.cluster.worker import Worker
from tests.support.processes.watchers import is_current
from tests.support.waiting import wait_until
from tests.workloads.cases.run_state import is_running, run_of
from workloads.launch import actions
from workloads.launch.types import LaunchSpec

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("provisioned", "watcher")]
Result = AppliedObject.Result


def test_runs_of_the_previous_cluster_are_lost_and_all_else_is_sent_again(
    granted: Tenant, namespace_a: Namespace, cluster: Cluster, job: LaunchSpec, notebook: LaunchSpec, by_alice: Actor,
    worker: Worker, kube_worker: Kube, admin: Api,
) -> None:  # fmt: skip
    def follow() -> bool:
        """What a worker does with the team's namespace. Returns whether its queue is sent."""
        with suppress(TryLater):
            steps.work_on_namespace(Namespace.objects.get(pk=namespace_a.pk), Deadline(), kube=kube_worker)
        return AppliedObject.objects.filter(kind="ClusterQueue", result=Result.APPLIED).exists()

    actions.launch("team-a", job, by=by_alice)
    actions.launch("team-a", notebook, by=by_alice)
    worker(lambda: is_running("train") and run_of("one").admitted_at)
    own = admin.get("v1/namespaces", "kube-system")["metadata"]["uid"]
    assert Cluster.objects.get().uid == own

    Cluster.objects.update(uid="the-previous-one")
    wait_until(lambda: Cluster.objects.get().other_uid == own, within_s=60, what="the watcher says that it is another")
    wait_until(lambda: not mirror.as_of(cluster.pk).is_current, within_s=60, what="the mirror is not current")
    assert mirror.is_known(cluster.pk, "Job")
    actions.launch("team-a", replace(job, name="asked"), by=by_alice)
    confirm_cluster(cluster, own, by=system_actor("manage.py"))
    wait_until(lambda: is_current(cluster), within_s=90, what="everything is listed again")
    wait_until(follow, within_s=60, what="the namespace and its queue are sent as new")
    worker(lambda: run_of("train").ended_at and run_of("one").ended_at and is_running("asked"))
    for name in ("train", "one"):
        run = run_of(name)
        assert (run.outcome, run.reason) == ("lost", "cluster_replaced")
        assert run.message.startswith("The cluster was replaced by another one")
    assert not AppliedObject.objects.exclude(result=Result.APPLIED).exists()
