"""Classes and images of the catalog as the API shows them to one person."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils import timezone

from accounts.actor import Actor
from catalog import images as fitting
from catalog import life_cycle
from catalog import queries as catalog
from catalog.contract import Contract, contract
from catalog.models import GpuClass, Image
from catalog.queries.capacity import Capacity
from catalog.queries.hardware import class_facts
from cluster.models import Cluster
from tenants import queries as tenants


@dataclass(frozen=True)
class Hold:
    since: datetime
    until: datetime | None
    reason: str
    message: str


@dataclass(frozen=True)
class Terms:
    version: int
    text: str


@dataclass(frozen=True)
class ClassEntry:
    """`successor`: a slug, "" where there is none that this person may know of. `contract` None: nothing runs on it."""

    gpu_class: GpuClass
    contract: Contract | None
    capacity: Capacity
    successor: str
    retirement: str
    held: Hold | None
    terms: Terms | None

    @property
    def unit(self) -> str:
        return catalog.unit_of(self.gpu_class)


@dataclass(frozen=True)
class ImageEntry:
    """`fits` None: nobody asked for a class. `reason`: why not; `caution`: what nobody knows."""

    image: Image
    deprecation: str
    fits: bool | None = None
    reason: str = ""
    caution: str = ""


def class_entries(cluster: Cluster, classes: Sequence[GpuClass], *, by: Actor) -> list[ClassEntry]:
    """In the order given, at the cost of their capacity and one query."""
    capacity = catalog.capacities(cluster, classes)
    known = tenants.visible_classes(by, cluster).values_list("pk", "slug", "name")
    slugs, names = {pk: slug for pk, slug, _ in known}, {pk: name for pk, _, name in known}
    return [
        ClassEntry(
            gpu_class=one,
            contract=None if one.is_storage else contract(catalog.axes_of(one)),
            capacity=capacity[one.pk],
            successor=slugs.get(one.successor_id or 0, ""),
            retirement=catalog.retirement(one, names),
            held=_hold(one),
            terms=Terms(one.terms_version, one.terms) if one.terms else None,
        )
        for one in classes
    ]


def image_entries(images: Sequence[Image], *, gpu_class: GpuClass | None) -> list[ImageEntry]:
    """Whose rows have their successor. One query where a class is asked for, else none."""
    today = timezone.localdate()
    facts = None if gpu_class is None else class_facts(gpu_class.cluster, [gpu_class])[gpu_class.pk]
    found = []
    for image in images:
        told: dict[str, Any] = {}
        if facts is not None:
            reason = fitting.compatibility(image, facts)
            told = {"fits": not reason, "reason": reason, "caution": "" if reason else fitting.caution(image, facts)}
        successor = image.successor.name if image.successor else ""
        found.append(ImageEntry(image, fitting.deprecation(image.deprecated_since, successor, today), **told))
    return found


def _hold(one: GpuClass) -> Hold | None:
    if one.held_since is None:
        return None
    return Hold(one.held_since, one.held_until, one.held_reason, life_cycle.hold(one, now=timezone.now()))
