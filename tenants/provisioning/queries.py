"""What a namespace should consist of: its classes, its objects, and which objects were not sent yet."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Any

from django.db.models import BooleanField, ExpressionWrapper

from catalog.classes import queries as class_queries
from catalog.models import GpuClass
from cluster.apply.types import ObjectKey, object_key
from cluster.manifests import namespace
from cluster.manifests.specs import NamespaceSpec, QuotaSpec
from cluster.models import AppliedObject, Cluster
from cluster.reads.cluster_queue import LiveClusterQueue
from portal.core.due import owner_label
from tenants.class_access.queries import usable_by as usable_by
from tenants.models import Namespace
from tenants.provisioning import entitlements
from tenants.provisioning.entitlements import ClassShare


def members_group(namespace: str) -> str:
    """Returns the group that a site's login gives to the team's members for kubectl."""
    return f"gpu-portal:{namespace}"


def class_shares(
    namespace: Namespace, units: dict[int, int], *, keepable: dict[int, int] | None = None, planned: bool = False
) -> list[ClassShare]:
    """Returns every class of the cluster with the team's units of it. Two queries. The team cannot borrow from a class
    that it may not use; granted units stay.

    `planned`: treats flavors that are still being created as ready.
    """
    ready = dict(
        AppliedObject.objects.filter(
            cluster_id=namespace.cluster_id, kind="ResourceFlavor", result=AppliedObject.Result.APPLIED
        ).values_list("name", "sent_at")
    )
    classes = GpuClass.objects.filter(cluster_id=namespace.cluster_id).exclude(life_cycle=GpuClass.LifeCycle.DRAFT)
    usable = usable_by(namespace.tenant_id)
    found = classes.annotate(is_usable=ExpressionWrapper(usable, BooleanField())).order_by("slug")
    kept = keepable or {}
    return [_share(one, units.get(one.pk, 0), kept.get(one.pk, 0), ready, planned) for one in found]


def _share(gpu_class: Any, in_force: int, keepable: int, ready: dict[str, datetime], planned: bool) -> ClassShare:
    flavor = class_queries.flavor_name(gpu_class)
    may_borrow = gpu_class.life_cycle == GpuClass.LifeCycle.ACTIVE and gpu_class.is_usable
    return ClassShare(
        slug=gpu_class.slug,
        resource=gpu_class.resource,
        flavor=flavor,
        device_class=gpu_class.device_class,
        cpu_per_unit=gpu_class.cpu_per_unit,
        memory_gib_per_unit=gpu_class.memory_gib_per_unit,
        borrowing_limit=gpu_class.borrowing_limit if may_borrow else 0,
        in_force=in_force,
        keepable=keepable,
        is_flavor_ready=planned or flavor in ready,
        flavor_sent_at=ready.get(flavor),
        is_storage=gpu_class.is_storage,
    )


def namespace_spec(
    namespace: Namespace, found: list[ClassShare], live: LiveClusterQueue, *, is_held: bool
) -> NamespaceSpec:
    has_queue = namespace.cluster.queue_system == Cluster.QueueSystem.KUEUE
    return NamespaceSpec(
        name=namespace.name,
        owner=owner_label(namespace),
        group=members_group(namespace.name),
        cohort=namespace.cluster.cohort,
        quota=entitlements.resource_quota(found, live),
        cells=entitlements.queue_cells(found, live) if has_queue else None,
        is_held=is_held,
        wakes=live.wakes,
        grace=entitlements.grace_cells(found, live) if has_queue else (),
        site=namespace.cluster.site_profile,
    )


def namespace_objects(namespace: Namespace) -> list[AppliedObject]:
    """Returns the objects sent for this namespace with their results, in a fixed order."""
    rows = AppliedObject.objects.filter(cluster_id=namespace.cluster_id, owner=owner_label(namespace))
    return list(rows.order_by("namespace", "kind", "name"))


def missing_objects(row: Namespace, sent: Collection[AppliedObject]) -> list[ObjectKey]:
    """Returns (kind, namespace, name) of required objects without a record; [] for a namespace that was never
    reconciled or is being closed. No query.
    """
    if not sent or row.wanted == Namespace.Wanted.CLOSED:
        return []
    known = {(one.kind, one.namespace, one.name) for one in sent}
    return [key for key in map(object_key, namespace.namespace_objects(_spec_without_numbers(row))) if key not in known]


def _spec_without_numbers(row: Namespace) -> NamespaceSpec:
    """Numbers are left out: they change the content of the objects, not which objects exist."""
    has_queue = row.cluster.queue_system == Cluster.QueueSystem.KUEUE
    return NamespaceSpec(
        name=row.name,
        owner=owner_label(row),
        group="",
        cohort="",
        quota=QuotaSpec(devices={}, cpu=0, memory_gib=0),
        cells=() if has_queue else None,
        is_held=True,
    )
