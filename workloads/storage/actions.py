"""Actions on volumes: attach one to a run, mark one for deletion, cancel the deletion."""

from __future__ import annotations

from django.db import transaction
from django.db.models.functions import Now
from django.utils import timezone

from accounts.core.actor import Actor
from accounts.events.actions import record
from catalog.models import GpuClass
from portal.core.due import touch
from portal.core.errors import get_or_refuse, refuse_if
from portal.core.hints import page_hint
from tenants.models import Namespace
from workloads.core import policy, queries
from workloads.models import Volume
from workloads.storage import policy as storage_policy
from workloads.storage import queries as reads
from workloads.storage.policy import GRACE, VolumeFacts


def attach(volume: Volume, namespace: Namespace, gpu_class: GpuClass) -> None:
    """For a run on the class that the caller creates in its own transaction: until that ends, no other run gets the
    volume, and the volume cannot be deleted. Raises Refused: volume_in_use, volume_going, volume_gone, volume_missing
    (409), volume_elsewhere (422).
    """
    refuse_if(storage_policy.may_mount(reads.volume_facts(_locked(volume.pk), namespace, gpu_class)))


@transaction.atomic
def request_delete(tenant: str, name: str, *, by: Actor) -> Volume:
    """The volume is deleted after the grace period, unless a member keeps it. A second call has no effect.

    Raises Refused: not_found (404), not_allowed, missing_scope (403), volume_in_use (409).
    """
    namespace, team, volume, found = _asked(tenant, name, by)
    refuse_if(storage_policy.may_delete(by, team, found))
    if Volume.objects.filter(pk=volume.pk, delete_requested_at=None).update(delete_requested_at=Now()):
        touch(Volume, volume.pk)
        volume.refresh_from_db(fields=["delete_requested_at"])
        after = {"size_gib": volume.size_gib, "deletes_at": reads.deletes_at(volume)}
        record(by, "volume.delete_asked", volume, tenant=tenant, after=after)
        page_hint(namespace.name)
    return volume


@transaction.atomic
def cancel_delete(tenant: str, name: str, *, by: Actor) -> Volume:
    """Cancel the deletion. Raises Refused: not_found (404), not_allowed, missing_scope (403),
    not_deleting, volume_going (409).
    """
    namespace, team, volume, found = _asked(tenant, name, by)
    refuse_if(storage_policy.may_keep(by, team, found, timezone.now()))
    # Uses the database's clock, as the worker does.
    in_time = Volume.objects.filter(pk=volume.pk, delete_requested_at__gt=Now() - GRACE)
    if not in_time.update(delete_requested_at=None):
        refuse_if(storage_policy.may_keep(by, team, found, reads.deletes_at(volume) or timezone.now()))
    touch(Volume, volume.pk)
    record(by, "volume.kept", volume, tenant=tenant)
    page_hint(namespace.name)
    volume.refresh_from_db(fields=["delete_requested_at"])
    return volume


def _asked(tenant: str, name: str, by: Actor) -> tuple[Namespace, policy.TeamFacts, Volume, VolumeFacts]:
    namespace, team = queries.team(by, tenant)
    known = get_or_refuse(reads.undeleted(namespace), name=name)
    volume = _locked(known.pk)
    holder = reads.holders(namespace.pk, name=volume.name).get(volume.name)
    is_own = reads.is_own(volume, by)
    return namespace, team, volume, VolumeFacts(name, reads.deletes_at(volume), False, holder, is_own)


def _locked(pk: int) -> Volume:
    """Reads after the lock see what other transactions have committed by then."""
    return Volume.objects.select_for_update(no_key=True).get(pk=pk)
