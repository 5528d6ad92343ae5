"""A run that the cluster takes its units from comes back by itself; it did not end, whatever its process said."""

from __future__ import annotations

import pytest

from accounts.actor import Actor
from devcluster.api import Api
from tenants.models import Namespace, Tenant
from tests.waiting import wait_until
from tests.workloads.conftest import Worker
from tests.workloads.test_runs import is_ready, named, run_of, shown
from workloads import actions
from workloads.phase import Phase
from workloads.policy import Wanted

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("provisioned", "watcher")]
QUEUES = "kueue.x-k8s.io/v1beta2/clusterqueues"


def test_a_notebook_whose_units_are_taken_away_is_queued_again_not_over(
    granted: Tenant, namespace_a: Namespace, notebook: Wanted, by_alice: Actor, worker: Worker, admin: Api
) -> None:
    """JupyterLab ends with 0 when it is asked to go: that is no sign that a person shut it down."""
    actions.launch("team-a", notebook, by=by_alice)
    worker(lambda: is_ready("one"))

    admin.patch(QUEUES, namespace_a.name, {"spec": {"stopPolicy": "HoldAndDrain"}})
    wait_until(lambda: named(admin, "v1/pods", namespace_a.name) == [], within_s=60)
    worker(lambda: shown("one").status.phase is Phase.QUEUED)
    assert run_of("one").ended_at is None

    admin.patch(QUEUES, namespace_a.name, {"spec": {"stopPolicy": "None"}})
    worker(lambda: shown("one").status.phase is Phase.READY, within_s=60)
    assert named(admin, "batch/v1/jobs", namespace_a.name) == ["one-1"]


def test_a_notebook_whose_pod_is_taken_off_its_node_was_not_shut_down_by_anybody(
    granted: Tenant, namespace_a: Namespace, notebook: Wanted, by_alice: Actor, worker: Worker, admin: Api
) -> None:
    actions.launch("team-a", notebook, by=by_alice)
    worker(lambda: is_ready("one"))

    for pod in named(admin, "v1/pods", namespace_a.name):
        admin.delete("v1/pods", pod, namespace=namespace_a.name)
    worker(lambda: run_of("one").ended_at, within_s=60)

    assert (run_of("one").outcome, run_of("one").reason) == ("stopped", "pod_removed")
