"""The worker deletes the claim of a volume when its grace period is over."""

from __future__ import annotations

from django.db import transaction
from django.db.models.functions import Now

from accounts.core.actor import system_actor
from accounts.events.actions import record
from cluster.apply import reconcile as apply_reconcile
from cluster.client.errors import NotFound
from cluster.client.kube import Kube
from cluster.manifests.metadata import OWNER_LABEL
from cluster.models import AppliedObject
from portal.core.due import DONE, Deadline, Outcome, owner_label
from portal.core.hints import page_hint
from workloads.models import Volume
from workloads.storage import queries as storage_queries
from workloads.storage.claim_states import CLAIM
from workloads.storage.policy import GRACE

DELETION_RULE = system_actor("rule volume deletion")

# A claim is deleted only once no pod uses it.
TERMINATING_AGAIN_S = 2.0


def reconcile(volume: Volume, deadline: Deadline, *, kube: Kube) -> Outcome:
    """Deletes the claim when its grace period is over. No run uses it then: new runs with it were refused."""
    if volume.gone_at is not None or volume.delete_requested_at is None:
        return DONE
    if not Volume.objects.filter(pk=volume.pk, delete_requested_at__lte=Now() - GRACE).exists():
        return Outcome(clock=storage_queries.deletes_at(volume))
    namespace, owner = volume.namespace, owner_label(volume)
    for row in AppliedObject.objects.filter(cluster_id=namespace.cluster_id, owner=owner):
        deadline.check()
        apply_reconcile.delete_row(kube, row)
    try:
        found = kube.get(CLAIM, name=volume.name, namespace=namespace.name)
    except NotFound:
        _end(volume)
        return DONE
    if found.labels.get(OWNER_LABEL) != owner:
        _end(volume)
        return DONE
    if not found.is_terminating:
        # A worker died after it created the claim and before it recorded that.
        deadline.check()
        kube.delete(CLAIM, name=volume.name, namespace=namespace.name, uid=found.uid)
    return Outcome(again_in_s=TERMINATING_AGAIN_S, is_applied=False)


@transaction.atomic
def _end(volume: Volume) -> None:
    if Volume.objects.filter(pk=volume.pk, gone_at=None).update(gone_at=Now()):
        namespace = volume.namespace
        after = {"size_gib": volume.size_gib}
        record(DELETION_RULE, "volume.gone", volume, tenant=namespace.tenant.slug, after=after)
        page_hint(namespace.name)
