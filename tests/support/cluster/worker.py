"""What the worker does, step by step, on a real cluster."""

from __future__ import annotations

from collections.abc import Callable

from catalog.models import Pool
from cluster.client.kube import Kube
from portal.core.due import Deadline, TryLater
from tenants.models import Namespace
from tenants.provisioning import reconcile as provisioning_reconcile
from tenants.provisioning import steps
from tests.support.waiting import wait_until

Worker = Callable[..., None]


def provision(namespace: Namespace, kube: Kube) -> None:
    """Does what workers do for a new team, until its queue is open."""
    provisioning_reconcile.reconcile_pool(Pool.objects.create(cluster=namespace.cluster), Deadline(), kube=kube)

    def is_open() -> bool:
        namespace.refresh_from_db()
        try:
            steps.work_on_namespace(namespace, Deadline(), kube=kube)
        except TryLater:
            # The next call continues at this step, as a worker does.
            return False
        return kube.get("ClusterQueue", name=namespace.name).body["spec"].get("stopPolicy", "None") == "None"

    wait_until(is_open)
