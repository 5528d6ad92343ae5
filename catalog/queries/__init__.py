"""Reads about the catalog: classes as pages and the API show them, with capacity from the mirror."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Any

from django.conf import settings
from django.db.models import QuerySet

from catalog.contract import Axes
from catalog.models import GpuClass
from catalog.queries.capacity import Capacity, NodeCapacity, capacities, units_used
from catalog.queries.hardware import discover
from catalog.queries.holders import claims, owners, retirement, successor_of, told
from catalog.queries.proposals import dismissed, proposals
from cluster import names
from cluster.models import Cluster
from portal.errors import refuse

__all__ = [
    "Capacity",
    "NodeCapacity",
    "capacities",
    "claims",
    "discover",
    "dismissed",
    "owners",
    "proposals",
    "retirement",
    "successor_of",
    "told",
    "units_used",
]

LifeCycle = GpuClass.LifeCycle
# What people see: a draft is the operators' own, a retired class has nothing left.
OPEN = (LifeCycle.ACTIVE, LifeCycle.RETIRING)


@dataclass(frozen=True)
class ClassView:
    """A class of the catalog as pages and the API show it."""

    id: int
    slug: str
    name: str
    summary: str
    vendor: str
    product: str
    partition: str
    sharing: str
    replicas: int
    interface: str
    resource: str
    interconnect: str
    memory_mib: int | None
    units_per_workload: int
    cpu_per_unit: int
    memory_gib_per_unit: int
    price_per_unit_hour: str
    weight: str
    borrowing_limit: int
    promise_limit: int | None
    life_cycle: str
    capacity: Capacity = field(default_factory=Capacity)

    @property
    def is_shared(self) -> bool:
        return self.sharing != "none"

    @property
    def unit(self) -> str:
        return unit_of(self)


def unit_of(one: GpuClass | ClassView) -> str:
    """What one unit is called: card, slice, share or core."""
    if one.interface == GpuClass.Interface.NONE:
        return "core"
    if one.sharing != GpuClass.Sharing.NONE:
        return "share"
    return "slice" if one.partition != "none" else "card"


def axes_of(gpu_class: GpuClass) -> Axes:
    """What the class's contract is computed from."""
    return Axes(
        vendor=gpu_class.vendor,
        partition=gpu_class.partition,
        sharing=gpu_class.sharing,
        replicas=gpu_class.replicas,
        memory_mib=gpu_class.memory_mib,
        interface=gpu_class.interface,
        resource=gpu_class.resource,
    )


def cluster() -> Cluster:
    """The one cluster of this installation. Raises Refused: no_cluster (503)."""
    found = Cluster.objects.filter(name=settings.CLUSTER_NAME).first()
    if found is None:
        raise refuse("no_cluster", "No cluster has been set up yet. Operators: `manage.py catalog settle`.", status=503)
    return found


def flavor_name(gpu_class: GpuClass) -> str:
    """ "" for a class without GPUs. Tolerations count as well: of a flavor with a topology they are immutable too."""
    if not gpu_class.resource:
        return ""
    tolerations = {
        f"toleration {index}": json.dumps(one, sort_keys=True) for index, one in enumerate(gpu_class.tolerations)
    }
    return names.flavor_name(gpu_class.slug, {**gpu_class.node_labels, **tolerations})


def open_classes(cluster: Cluster) -> QuerySet[GpuClass]:
    return GpuClass.objects.filter(cluster=cluster, life_cycle__in=OPEN).order_by("slug")


def class_views(cluster: Cluster, classes: Iterable[GpuClass] | None = None) -> list[ClassView]:
    """The open classes (or those given) by slug, with capacity. Seven queries, whatever their number."""
    found = list(open_classes(cluster) if classes is None else classes)
    capacity = capacities(cluster, found)
    return [_view(gpu_class, capacity[gpu_class.pk]) for gpu_class in found]


def promise_limits(classes: Collection[GpuClass]) -> dict[int, int | None]:
    """Units of each class that may be promised at one time: staff's limit, else allocatable; None: unknown."""
    typed = {gpu_class.pk: gpu_class.promise_limit for gpu_class in classes}
    open_ended = [gpu_class for gpu_class in classes if gpu_class.promise_limit is None]
    if open_ended:
        found = capacities(open_ended[0].cluster, open_ended)
        typed |= {pk: capacity.allocatable for pk, capacity in found.items()}
    return typed


def _view(gpu_class: GpuClass, capacity: Capacity) -> ClassView:
    same: dict[str, Any] = {
        name: getattr(gpu_class, name)
        for name in ClassView.__dataclass_fields__
        if name not in ("capacity", "price_per_unit_hour", "weight")
    }
    return ClassView(
        **same,
        price_per_unit_hour=f"{gpu_class.price_per_unit_hour:f}",
        weight=f"{gpu_class.weight:f}",
        capacity=capacity,
    )
