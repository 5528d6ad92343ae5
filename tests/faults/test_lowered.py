"""A team's quota is lowered below its use while a neighbour wants the GPUs, with the real Kueue."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.utils import timezone

from catalog.models import GpuClass
from cluster.client.kube import Kube
from devcluster.client.kube import Api
from portal.core.due import Deadline, Outcome
from tenants.models import Namespace, Tenant
from tenants.provisioning import steps
from tests.support.cluster.ended_grants import end, kept, waits_for
from tests.support.cluster.queued import admitted, launch
from tests.support.rows import make
from tests.support.waiting import wait_until
from tests.tenants.provisioning.test_grants_grace import namespace_b, xe

__all__ = ["namespace_b", "xe"]


@pytest.mark.usefixtures("clean_cluster")
def test_nothing_that_runs_is_lost_within_the_grace(
    look: Callable[[], Outcome],
    team_a: Tenant,
    xe: GpuClass,
    namespace_a: Namespace,
    namespace_b: Namespace,
    kube_worker: Kube,
    admin: Api,
) -> None:
    """All four GPUs of the node run jobs of team A; from now on its quota is one GPU and team B's is three."""
    wait_until(lambda: all(pod["spec"].get("nodeName") != "intel-xe" for pod in admin.list("v1/pods")), within_s=60)
    grant = make.grant(team_a, xe, units=4)
    look()
    for name in ("one", "two", "three", "four"):
        launch(kube_worker, xe, namespace_a, name=name)
    wait_until(lambda: look() and len(admitted(admin, namespace_a)) == 4)
    running = set(admitted(admin, namespace_a))

    end(grant)
    make.grant(team_a, xe, units=1, since=timezone.now(), until=timezone.now() + timedelta(days=7))
    make.grant(namespace_b.tenant, xe, units=3)
    wait_until(lambda: look() and kept(admin, namespace_a) is not None)
    steps.work_on_namespace(namespace_b, Deadline(), kube=kube_worker)
    launch(kube_worker, xe, namespace_b, name="first")
    wait_until(lambda: "topology" in waits_for(admin, namespace_b, "first-1"))
    assert set(admitted(admin, namespace_a)) == running, "the neighbour waits and takes nothing"

    end(grant, ago=grant.grace)
    look()
    wait_until(lambda: set(admitted(admin, namespace_b)) == {"first-1"})
    wait_until(lambda: len(admitted(admin, namespace_a)) == 3)
    assert set(admitted(admin, namespace_a)) < running
