"""Gives an adopted namespace back: without what the portal put into it, and with the labels that it had."""

from __future__ import annotations

from collections.abc import Collection

from cluster.apply.reconcile import delete_row
from cluster.apply.types import PREVIOUS_CLUSTER
from cluster.client.errors import NotFound
from cluster.client.kube import Kube
from cluster.client.types import ApiObject
from cluster.manifests import namespace as manifests
from cluster.manifests.adoption.labels import ADOPTION_MANAGER, BEFORE_ANNOTATION, is_adopted, release_patch
from cluster.manifests.metadata import OWNER_LABEL
from cluster.models import AppliedObject
from cluster.reads import cluster_queue
from portal.core.due import Deadline, TryLater, owner_label
from tenants.models import Namespace
from tenants.provisioning import queries

_LABELS_LOST = (
    f"The namespace cannot be given back: somebody removed its annotation {BEFORE_ANNOTATION}. Set it again, one line "
    "KEY=VALUE for each label that the namespace had; or remove the portal's labels from it."
)


def release_namespace(row: Namespace, deadline: Deadline, *, kube: Kube, keep: Collection[str] = ()) -> None:
    """Requires that the queue is gone. Objects of others stay, and the portal's of the kinds `keep`. Can be repeated.
    Raises Conflict if somebody changes the namespace at the same moment, TryLater if the labels of before are lost.
    """
    sent = AppliedObject.objects.filter(cluster=row.cluster, namespace=row.name)
    live = _own_namespace(row, kube)
    if live is not None:
        if not is_adopted(live.body):
            raise TryLater("adoption", _LABELS_LOST)
        for one in sent.exclude(kind__in=keep).order_by("pk"):
            deadline.check()
            delete_row(kube, one)
        spec = queries.namespace_spec(row, [], cluster_queue.ABSENT_QUEUE, is_held=True)
        deadline.check()
        patch = release_patch(live.body, manifests.namespace(spec))
        kube.merge("Namespace", name=row.name, body=patch, manager=ADOPTION_MANAGER)
    # What is left in a namespace that is not the portal's is not the portal's either. Volumes of a cluster that was
    # replaced were not in it: the end of the team, or of the undo, says so and forgets them.
    sent.exclude(kind="PersistentVolumeClaim", code=PREVIOUS_CLUSTER).delete()
    AppliedObject.objects.filter(cluster=row.cluster, kind="Namespace", name=row.name).delete()


def forget_deleted_namespace(row: Namespace, *, kube: Kube) -> None:
    """An adopted namespace that somebody has deleted: the portal creates its own, which goes with its team."""
    try:
        kube.get("Namespace", name=row.name)
    except NotFound:
        AppliedObject.objects.filter(cluster=row.cluster, owner=owner_label(row)).delete()
        Namespace.objects.filter(pk=row.pk).update(origin=Namespace.Origin.PORTAL)
        row.origin = Namespace.Origin.PORTAL


def _own_namespace(row: Namespace, kube: Kube) -> ApiObject | None:
    try:
        found = kube.get("Namespace", name=row.name)
    except NotFound:
        return None
    return found if found.labels.get(OWNER_LABEL) == owner_label(row) else None
