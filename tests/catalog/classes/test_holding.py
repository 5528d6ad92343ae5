"""A held class: nothing new is admitted, running workloads go on, and its release needs no manual step."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from accounts.core.actor import system_actor
from catalog.classes import actions, queries
from catalog.models import GpuClass
from cluster.client.kube import Kube
from devcluster.client.kube import Api
from portal.core.due import Outcome
from tenants.models import Namespace, Tenant
from tenants.provisioning import reconcile
from tests.support.cluster.queued import WORKLOADS, admitted, launch
from tests.support.rows import make
from tests.support.waiting import wait_until

FLAVORS = "kueue.x-k8s.io/v1beta2/resourceflavors"
BY = system_actor("test")
TAINT = {"key": "gpu-portal/held", "value": "true", "effect": "NoSchedule"}
pytestmark = pytest.mark.usefixtures("clean_cluster")


def waiting_text(admin: Api, namespace: Namespace, job: str) -> str:
    for workload in admin.list(WORKLOADS, namespace=namespace.name):
        if workload["metadata"]["ownerReferences"][0]["name"] == job:
            conditions = workload.get("status", {}).get("conditions", [])
            return next((one["message"] for one in conditions if one["type"] == "QuotaReserved"), "")
    return ""


def test_held_a_class_admits_nothing_new_and_released_it_goes_on_by_itself(
    look: Callable[[], Outcome], team_a: Tenant, a100: GpuClass, namespace_a: Namespace, kube_worker: Kube, admin: Api
) -> None:
    make.grant(team_a, a100, units=4)
    look()
    launch(kube_worker, a100, namespace_a, name="before")
    wait_until(lambda: set(admitted(admin, namespace_a)) == {"before-1"})

    actions.hold_class(a100.pk, reason="a driver update", until=None, by=BY)
    look()
    launch(kube_worker, a100, namespace_a, name="after")
    wait_until(lambda: "gpu-portal/held" in waiting_text(admin, namespace_a, "after-1"))
    assert set(admitted(admin, namespace_a)) == {"before-1"}, "3 of 4 are free, and it waits all the same"
    job = admin.get("batch/v1/jobs", "before-1", namespace=namespace_a.name)
    assert job["spec"]["suspend"] is False

    actions.release_class(a100.pk, by=BY)
    assert look().again_in_s == reconcile.RETRY_SOON_S, "Kueue may hear of the queue before it hears of the flavor"
    # Reconcile repeatedly, as a worker does whenever the row is due.
    wait_until(lambda: look() and set(admitted(admin, namespace_a)) == {"before-1", "after-1"}, every_s=1)
    assert TAINT not in admin.get(FLAVORS, queries.flavor_name(a100))["spec"]["nodeTaints"]


def test_a_held_class_has_a_flavor_that_no_pod_tolerates(
    look: Callable[[], Outcome], a100: GpuClass, admin: Api
) -> None:
    actions.hold_class(a100.pk, reason="a driver update", until=None, by=BY)
    look()
    assert admin.get(FLAVORS, queries.flavor_name(a100))["spec"]["nodeTaints"][1:] == [TAINT]
