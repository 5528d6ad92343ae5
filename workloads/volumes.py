"""The verbs about volumes: a run takes one, people have one deleted or keep it after all, the worker ends its claim."""

from __future__ import annotations

from dataclasses import replace

from django.db import transaction
from django.db.models.functions import Now
from django.utils import timezone

from accounts.actions import record
from accounts.actor import Actor, system
from cluster import apply
from cluster.kube import Kube, NotFound
from cluster.manifests import OWNER_LABEL
from cluster.models import AppliedObject
from portal.due import DONE, Deadline, Outcome, owner_label, touch
from portal.errors import get_or_refuse, refuse_if
from portal.hints import page_hint
from tenants.models import Namespace
from workloads import policy, queries, volume_policy
from workloads.models import Volume
from workloads.queries import volumes as reads
from workloads.queries.volumes import CLAIM
from workloads.volume_policy import GRACE, VolumeFacts

RULE = system("rule deleted volumes")
# A claim stays until no pod uses it.
GOING_AGAIN_S = 2.0


def take(volume: Volume) -> None:
    """For a run that the caller makes in its own transaction: until that ends nobody else gets the volume, and nobody
    deletes it. Raises Refused: volume_in_use, volume_going, volume_gone (409).
    """
    refuse_if(volume_policy.may_take(reads.facts(_locked(volume.pk))))


@transaction.atomic
def request_delete(tenant: str, name: str, *, by: Actor) -> Volume:
    """It goes when its grace is over, unless somebody keeps it. Asking twice is asking once.

    Raises Refused: not_found (404), not_allowed, missing_scope (403), volume_in_use (409).
    """
    namespace, team, volume, found = _asked(tenant, name, by)
    refuse_if(volume_policy.may_delete(by, team, found))
    if Volume.objects.filter(pk=volume.pk, delete_requested_at=None).update(delete_requested_at=Now()):
        touch(Volume, volume.pk)
        volume.refresh_from_db(fields=["delete_requested_at"])
        after = {"size_gib": volume.size_gib, "deletes_at": reads.deletes_at(volume)}
        record(by, "volume.delete_asked", volume, tenant=tenant, after=after)
        page_hint(namespace.name)
    return volume


@transaction.atomic
def keep(tenant: str, name: str, *, by: Actor) -> Volume:
    """As if nobody had asked to delete it. Raises Refused: not_found (404), not_allowed, missing_scope (403),
    not_deleting, volume_going (409).
    """
    namespace, team, volume, found = _asked(tenant, name, by)
    refuse_if(volume_policy.may_keep(by, team, found, timezone.now()))
    # By the database's clock, as the worker reads it.
    in_time = Volume.objects.filter(pk=volume.pk, delete_requested_at__gt=Now() - GRACE)
    if not in_time.update(delete_requested_at=None):
        refuse_if(volume_policy.may_keep(by, team, found, reads.deletes_at(volume) or timezone.now()))
    touch(Volume, volume.pk)
    record(by, "volume.kept", volume, tenant=tenant)
    page_hint(namespace.name)
    volume.refresh_from_db(fields=["delete_requested_at"])
    return volume


def _asked(tenant: str, name: str, by: Actor) -> tuple[Namespace, policy.TeamFacts, Volume, VolumeFacts]:
    namespace, team = queries.team(by, tenant)
    known = get_or_refuse(reads.there(namespace), name=name)
    volume = _locked(known.pk)
    return namespace, team, volume, replace(reads.facts(volume), is_own=reads.is_own(volume, by))


def _locked(pk: int) -> Volume:
    """What is read after it is what others have committed by then."""
    return Volume.objects.select_for_update(no_key=True).get(pk=pk)


# ---- what the worker does --------------------------------------------------------------------------------------------


def reconcile(volume: Volume, deadline: Deadline, *, kube: Kube) -> Outcome:
    """Delete the claim when its time is over. No run has it then: who asked for that was refused, and no other came."""
    if volume.gone_at is not None or volume.delete_requested_at is None:
        return DONE
    if not Volume.objects.filter(pk=volume.pk, delete_requested_at__lte=Now() - GRACE).exists():
        return Outcome(clock=reads.deletes_at(volume))
    namespace, owner = volume.namespace, owner_label(volume)
    for row in AppliedObject.objects.filter(cluster_id=namespace.cluster_id, owner=owner):
        deadline.check()
        apply.delete_row(kube, row)
    try:
        found = kube.get(CLAIM, name=volume.name, namespace=namespace.name)
    except NotFound:
        _end(volume)
        return DONE
    if found.labels.get(OWNER_LABEL) != owner:
        _end(volume)
        return DONE
    if not found.is_terminating:
        # A worker died between making it and writing that down.
        deadline.check()
        kube.delete(CLAIM, name=volume.name, namespace=namespace.name, uid=found.uid)
    return Outcome(again_in_s=GOING_AGAIN_S, is_applied=False)


@transaction.atomic
def _end(volume: Volume) -> None:
    if Volume.objects.filter(pk=volume.pk, gone_at=None).update(gone_at=Now()):
        namespace = volume.namespace
        after = {"size_gib": volume.size_gib}
        record(RULE, "volume.gone", volume, tenant=namespace.tenant.slug, after=after)
        page_hint(namespace.name)
