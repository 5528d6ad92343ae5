"""Gives an adopted namespace back: without what the portal put into it, and with the labels that it had."""

from __future__ import annotations

from collections.abc import Collection

from cluster.apply.reconcile import delete_row
from cluster.client.errors import NotFound
from cluster.client.kube import Kube
from cluster.manifests import namespace as manifests
from cluster.manifests.adoption.labels import ADOPTION_MANAGER, is_adopted, release_patch
from cluster.manifests.metadata import OWNER_LABEL
from cluster.models import AppliedObject
from cluster.reads import cluster_queue
from portal.core.due import Deadline, owner_label
from tenants.models import Namespace
from tenants.provisioning import queries


def release_namespace(row: Namespace, deadline: Deadline, *, kube: Kube, keep: Collection[str] = ()) -> None:
    """Requires that the queue is gone. Objects of others stay, and the portal's of the kinds `keep`. Can be repeated.
    Raises Conflict if somebody changes the namespace at the same moment.
    """
    sent = AppliedObject.objects.filter(cluster=row.cluster, namespace=row.name).exclude(kind__in=keep)
    for one in sent.order_by("pk"):
        deadline.check()
        delete_row(kube, one)
    try:
        body = kube.get("Namespace", name=row.name)
    except NotFound:
        pass
    else:
        if body.labels.get(OWNER_LABEL) == owner_label(row) and is_adopted(body.body):
            spec = queries.namespace_spec(row, [], cluster_queue.ABSENT_QUEUE, is_held=True)
            deadline.check()
            patch = release_patch(body.body, manifests.namespace(spec))
            kube.merge("Namespace", name=row.name, body=patch, manager=ADOPTION_MANAGER)
    AppliedObject.objects.filter(cluster=row.cluster, kind="Namespace", name=row.name).delete()
