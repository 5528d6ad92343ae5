"""What a team holds of storage, and what its volumes take of it."""

from __future__ import annotations

from django.utils import timezone

from catalog.models import GpuClass
from catalog.queries.capacity import GIB
from cluster import queries as mirror
from tenants.models import Namespace
from tenants.queries import units_in_force
from workloads.models import Volume
from workloads.volume_policy import StorageFacts


def storage_facts(namespace: Namespace) -> StorageFacts | None:
    """None where the cluster offers no storage class. One query then, else five."""
    classes = GpuClass.objects.filter(cluster_id=namespace.cluster_id, interface=GpuClass.Interface.STORAGE)
    # The ResourceQuota counts one that is retired too; of these nothing is granted any more.
    found = list(classes.exclude(life_cycle=GpuClass.LifeCycle.DRAFT))
    if not found:
        return None
    in_force = units_in_force(namespace.tenant_id, timezone.now())
    open_one = next((one for one in found if one.life_cycle != GpuClass.LifeCycle.RETIRED), found[0])
    granted = sum(in_force.get(one.pk, 0) for one in found)
    return StorageFacts(open_one.slug, open_one.name, granted, _used(namespace))


def _used(namespace: Namespace) -> int | None:
    """Claims in the cluster, whoever made them, and volumes that were asked for and are not there yet."""
    if not mirror.is_known(namespace.cluster_id, "PersistentVolumeClaim"):
        return None
    claims = mirror.objects(namespace.cluster_id, kind="PersistentVolumeClaim", namespace=namespace.name)
    there = {one.name for one in claims}
    volumes = Volume.objects.filter(namespace=namespace, delete_requested_at=None).values_list("name", "size_gib")
    coming = sum(size for name, size in volumes if name not in there)
    return -(-sum(int(one.record["asked_bytes"]) for one in claims) // GIB) + coming
