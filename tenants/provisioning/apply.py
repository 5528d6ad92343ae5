"""What the reconcilers of a namespace share: reading its live queue, the objects sent for it, and sending."""

from __future__ import annotations

from collections.abc import Sequence

from django.db.models import QuerySet

from cluster.apply.applied_objects import rows_of_owner
from cluster.apply.reconcile import converge
from cluster.apply.types import ConvergeResult, ObjectKey
from cluster.client.errors import NotFound
from cluster.client.kube import Kube
from cluster.manifests.metadata import OWNER_LABEL, Manifest
from cluster.models import AppliedObject, Cluster
from cluster.reads import cluster_queue
from cluster.reads.cluster_queue import LiveClusterQueue
from portal.core.due import Deadline, owner_label
from tenants.models import Namespace

WantedState = Namespace.Wanted

KnownObjects = dict[ObjectKey, AppliedObject]


# Seconds until the next check while a change is in progress: Workloads ending, a namespace terminating.
RETRY_SOON_S = 3.0


def apply_objects(
    row: Namespace,
    wanted: Sequence[Manifest],
    deadline: Deadline,
    *,
    kube: Kube,
    is_all: bool = True,
    known: dict[ObjectKey, AppliedObject] | None = None,
) -> ConvergeResult:
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


def queue_of(row: Namespace, kube: Kube) -> LiveClusterQueue:
    """Returns the live ClusterQueue; absent if it does not exist or the portal does not own it (converge reports that).

    A queue of ours without its owner label is still ours: treating it as absent would remove the flavors of what runs
    in it.
    """
    if row.cluster.queue_system != Cluster.QueueSystem.KUEUE:
        return cluster_queue.ABSENT_QUEUE
    try:
        answer = kube.get("ClusterQueue", name=row.name)
    except NotFound:
        return cluster_queue.ABSENT_QUEUE
    is_ours = answer.labels.get(OWNER_LABEL) == owner_label(row) or (
        applied_objects(row).filter(kind="ClusterQueue", name=row.name, uid=answer.uid).exists()
    )
    return cluster_queue.parse_cluster_queue(answer.body) if is_ours else cluster_queue.ABSENT_QUEUE


def known_objects(row: Namespace) -> dict[ObjectKey, AppliedObject]:
    return rows_of_owner(row.cluster_id, owner_label(row))


def applied_objects(row: Namespace) -> QuerySet[AppliedObject]:
    return AppliedObject.objects.filter(cluster_id=row.cluster_id, owner=owner_label(row))


def is_namespace_owned(known: KnownObjects) -> bool:
    """False if the namespace was changed, or deleted and recreated by others: it is sent before objects are tried in
    it.
    """
    row = next((row for (kind, _, _), row in known.items() if kind == "Namespace"), None)
    return row is not None and row.result == AppliedObject.Result.APPLIED and not row.difference
