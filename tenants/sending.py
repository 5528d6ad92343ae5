"""What reconcilers of a namespace share: its queue as it is, what was sent for it, and sending."""

from __future__ import annotations

from collections.abc import Sequence

from django.db.models import QuerySet

from cluster import live_queue
from cluster.apply import OWNER_LABEL, Converged, Key, Manifest, converge, rows_of
from cluster.kube import Kube, NotFound
from cluster.live_queue import LiveQueue
from cluster.models import AppliedObject, Cluster
from portal.due import Deadline, owner_label
from tenants.models import Namespace

# Looking again while something is on its way: Workloads ending, a namespace terminating.
SOON_S = 3.0


def send(
    row: Namespace,
    wanted: Sequence[Manifest],
    deadline: Deadline,
    *,
    kube: Kube,
    is_all: bool = True,
    known: dict[Key, AppliedObject] | None = None,
) -> Converged:
    """`known`: as in `converge`."""
    return converge(
        kube=kube,
        cluster_id=row.cluster_id,
        owner=owner_label(row),
        manifests=wanted,
        deadline=deadline,
        delete_unwanted=is_all,
        known=known,
    )


def queue_of(row: Namespace, kube: Kube) -> LiveQueue:
    """The queue as it is; absent when it was never made or is somebody else's (converge will say so).

    Ours whose label somebody took off is ours: taken for absent, what runs in it would lose its flavors.
    """
    if row.cluster.queue_system != Cluster.QueueSystem.KUEUE:
        return live_queue.ABSENT
    try:
        answer = kube.get("ClusterQueue", name=row.name)
    except NotFound:
        return live_queue.ABSENT
    is_ours = answer.labels.get(OWNER_LABEL) == owner_label(row) or (
        applied(row).filter(kind="ClusterQueue", name=row.name, uid=answer.uid).exists()
    )
    return live_queue.read(answer.body) if is_ours else live_queue.ABSENT


def known_of(row: Namespace) -> dict[Key, AppliedObject]:
    return rows_of(row.cluster_id, owner_label(row))


def applied(row: Namespace) -> QuerySet[AppliedObject]:
    return AppliedObject.objects.filter(cluster_id=row.cluster_id, owner=owner_label(row))
