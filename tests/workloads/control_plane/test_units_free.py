"""Whatever ends a pod, its units are free a moment later, for the cluster and for the portal.

`run.py soak churn` measures the delay, on a machine that does nothing else.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from accounts.core.actor import Actor
from devcluster.client.kube import Api
from devcluster.kubelet.scripted import ScriptedKubelet, runs
from tenants.models import Namespace
from tests.load.churn import pod_ends
from tests.load.churn.audit import Accounts
from tests.support.cluster.worker import Worker
from tests.workloads.cases.run_state import is_running, run_of
from workloads.launch import actions
from workloads.launch.types import LaunchSpec

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("provisioned", "watcher")]
# Generous: the machine may be busy with other tests.
SOON_S = 30.0


@pytest.mark.parametrize("end", ["done", "crashed", "stopped"])
def test_units_are_free_soon_after_the_pods_end(
    namespace_a: Namespace, job: LaunchSpec, by_alice: Actor, worker: Worker, admin: Api, end: str
) -> None:
    kubelet, accounts = ScriptedKubelet(admin), Accounts(admin, namespace_a)
    with kubelet.claim(namespace_a.name, script=runs), pod_ends.heard(accounts) as ends:
        actions.launch("team-a", replace(job, units=2), by=by_alice)
        worker(lambda: is_running("train"))
        worker(lambda: accounts.holders() == {"pods": 1, "ResourceQuota": 2, "ClusterQueue": 2, "portal": 2})
        pod = kubelet.bound(namespace_a.name)

        if end == "stopped":
            actions.stop("team-a", "train", by=by_alice)
        else:
            kubelet.exited(pod, 0 if end == "done" else 1)
        assert ends.freed_after_s(pod["metadata"]["name"], worker) < SOON_S
    worker(lambda: run_of("train").ended_at)
    assert run_of("train").outcome == {"done": "succeeded", "crashed": "failed", "stopped": "stopped"}[end]
