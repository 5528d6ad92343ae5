"""What the worker writes to the rows of an adoption: what it has read, that the namespace is taken over, that it is
given back.
"""

from __future__ import annotations

from django.db import transaction
from django.db.models.functions import Coalesce, Now

from accounts.core.actor import system_actor
from accounts.events.actions import record
from cluster.apply.applied_objects import forget_left_claims, outcome_row, record_outcomes
from cluster.client.types import ApiObject
from cluster.manifests.metadata import Manifest
from cluster.models import AppliedObject
from operations.models import Adoption
from portal.core.due import owner_label, wake
from portal.core.hints import page_hint
from tenants.core.queries import lock_namespace
from tenants.models import Namespace
from workloads.models import Volume

ADOPTION_RULE = system_actor("adoption")


def store_reading(
    row: Adoption, namespace: Namespace, findings: list[dict[str, str]], consent: str, *, is_read: bool
) -> None:
    is_new = row.findings != findings or row.consent != consent or (row.read_at is not None) != is_read
    read_at = Now() if is_read else None
    Adoption.objects.filter(pk=row.pk).update(findings=findings, consent=consent, read_at=read_at)
    if is_new:
        page_hint(namespace.name)


def record_taken(row: Adoption, namespace: Namespace, manifest: Manifest, answer: ApiObject) -> None:
    """`answer`: the namespace, as the cluster answered when `manifest` was applied."""
    with transaction.atomic():
        outcome = outcome_row(
            namespace.cluster_id, owner_label(namespace), manifest, AppliedObject.Result.APPLIED, answer=answer
        )
        record_outcomes([outcome])
        # An undo may have been ordered in the meantime, or the team closed: both find the namespace as it is now, and
        # nothing starts in it.
        is_closed = lock_namespace(namespace.pk).wanted == Namespace.Wanted.CLOSED
        if is_closed or not Adoption.objects.filter(pk=row.pk, undo_requested_at=None).update(adopted_at=Now()):
            return
        Namespace.objects.filter(pk=namespace.pk).update(origin=Namespace.Origin.ADOPTED)
        record(ADOPTION_RULE, "adoption.completed", row, tenant=namespace.tenant.slug)
    wake(Namespace, [namespace.pk])
    page_hint(namespace.name)


def record_undone(row: Adoption, namespace: Namespace) -> None:
    """Volumes hold data of the team: their claims stay in the namespace, and are not the portal's any more."""
    with transaction.atomic():
        Namespace.objects.filter(pk=namespace.pk).update(applied_as_of=None)
        kept = Volume.objects.filter(namespace=namespace, gone_at=None)
        kept.update(delete_requested_at=Coalesce("delete_requested_at", Now()), gone_at=Now())
        forget_left_claims(namespace.cluster_id, namespace.name)
        Adoption.objects.filter(pk=row.pk).update(
            undone_at=Now(), accepted_at=None, adopted_at=None, undo_requested_at=None
        )
        record(ADOPTION_RULE, "adoption.undone", row, tenant=namespace.tenant.slug)
    page_hint(namespace.name)
