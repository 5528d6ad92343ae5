"""Classes and images of the catalog as the API shows them to one user."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils import timezone

from accounts.core.actor import Actor
from catalog.classes import life_cycle
from catalog.classes import queries as catalog
from catalog.classes.capacity import queries as capacity_queries
from catalog.classes.capacity.types import Capacity
from catalog.contract.guarantees import contract_of
from catalog.contract.types import Contract
from catalog.images import compatibility as fitting
from catalog.images.queries import hardware_facts
from catalog.interconnect.queries import measured_sentences
from catalog.models import GpuClass, Image
from catalog.pool.queries import DelayedFall, delayed_falls
from cluster.models import Cluster
from desk.capacity.totals import with_faults
from desk.classes.domains import ClassDomains, class_domains
from tenants.class_access import queries as class_access_queries


@dataclass(frozen=True)
class ClassHold:
    since: datetime
    until: datetime | None
    reason: str
    message: str


@dataclass(frozen=True)
class ClassTerms:
    version: int
    text: str


@dataclass(frozen=True)
class ClassRow:
    """`successor`: a slug, "" if there is none that this user may see. `contract` None: storage."""

    gpu_class: GpuClass
    contract: Contract | None
    capacity: Capacity
    successor: str
    retirement: str
    migration: str
    held: ClassHold | None
    terms: ClassTerms | None
    delayed_falls: list[DelayedFall]
    topology: ClassDomains | None

    @property
    def unit(self) -> str:
        return catalog.unit_of(self.gpu_class)


@dataclass(frozen=True)
class ClassDetailRow(ClassRow):
    """`measured`: of its nodes, each of which is read for it, so it is not in the list. None: the nodes are unknown."""

    measured: list[str] | None


@dataclass(frozen=True)
class ImageRow:
    """`fits` None: the request names no class. `reason`: why it does not fit; `caution`: what is unknown."""

    image: Image
    deprecation: str
    fits: bool | None = None
    reason: str = ""
    caution: str = ""


def class_rows(cluster: Cluster, classes: Sequence[GpuClass], *, by: Actor) -> list[ClassRow]:
    """Keeps the given order. Costs the queries of the classes' capacity and three more; one more if GPUs have faults,
    and five if one has a topology of its own."""
    capacity = with_faults(cluster, classes, capacity_queries.capacities(cluster, classes))
    falls, topologies = delayed_falls(classes), class_domains(classes)
    known = class_access_queries.visible_classes(by, cluster).values_list("pk", "slug", "name")
    slugs, names = {pk: slug for pk, slug, _ in known}, {pk: name for pk, _, name in known}
    return [
        ClassRow(
            gpu_class=one,
            contract=None if one.is_storage else contract_of(catalog.axes_of(one)),
            capacity=capacity[one.pk],
            successor=slugs.get(one.successor_id or 0, ""),
            retirement=catalog.retirement_notice(one, names),
            migration=catalog.migration_advice(one, names.get(one.successor_id or 0, "")),
            held=_hold(one),
            terms=ClassTerms(one.terms_version, one.terms) if one.terms else None,
            delayed_falls=falls.get(one.pk, []),
            topology=topologies.get(one.pk),
        )
        for one in classes
    ]


def class_detail(cluster: Cluster, one: GpuClass, *, by: Actor) -> ClassDetailRow:
    """Costs the queries of `class_rows` and one more, or three if anything was measured."""
    [row] = class_rows(cluster, [one], by=by)
    return ClassDetailRow(**vars(row), measured=measured_sentences(cluster, [one])[one.pk])


def image_rows(images: Sequence[Image], *, gpu_class: GpuClass | None) -> list[ImageRow]:
    """Expects rows with their successor loaded. One query if a class is given, else none."""
    today = timezone.localdate()
    facts = None if gpu_class is None else hardware_facts(gpu_class.cluster, [gpu_class])[gpu_class.pk]
    found = []
    for image in images:
        told: dict[str, Any] = {}
        if facts is not None:
            reason = fitting.compatibility(image, facts)
            told = {"fits": not reason, "reason": reason, "caution": "" if reason else fitting.caution(image, facts)}
        successor = image.successor.name if image.successor else ""
        found.append(ImageRow(image, fitting.deprecation(image.deprecated_since, successor, today), **told))
    return found


def _hold(one: GpuClass) -> ClassHold | None:
    if one.held_since is None:
        return None
    return ClassHold(one.held_since, one.held_until, one.held_reason, life_cycle.hold_sentence(one, now=timezone.now()))
