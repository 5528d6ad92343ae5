"""The lists of classes and images for the editor, and the values that nodes report for the fields of a class."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date

from django.db.models.fields.json import KT

from catalog.classes import queries as catalog
from catalog.discovery import mig_profiles
from catalog.images.compatibility import VENDORS
from catalog.models import GpuClass, Image
from catalog.trials.queries import trials_of
from catalog.trials.shown import counted_text, selector_text
from cluster.models import Cluster, MirrorNode, MirrorUnits
from tenants.core.queries import database_now
from tenants.grants.queries import units_by_team

_PRODUCT = "nvidia.com/gpu.product"
_MIG = "nvidia.com/mig-"


@dataclass(frozen=True)
class EditableClass:
    """`teams` and `units`: with a grant in force."""

    slug: str
    name: str
    life_cycle: str
    sharing: str
    unit: str
    resource: str
    teams: int
    units: int


@dataclass(frozen=True)
class EditableImage:
    """`gpus`: which it needs, "" for any."""

    pk: int
    name: str
    version: str
    reference: str
    gpus: str
    deprecated_since: date | None
    successor: str


def editable_classes(cluster: Cluster) -> list[EditableClass]:
    """Every class, drafts and retired ones too, by slug. Three queries."""
    classes = list(GpuClass.objects.filter(cluster=cluster).order_by("slug"))
    held = units_by_team([one.pk for one in classes], database_now())
    found = []
    for one in classes:
        units = [own.in_force for own in held.get(one.pk, {}).values() if own.in_force]
        found.append(
            EditableClass(
                slug=one.slug,
                name=one.name,
                life_cycle=one.life_cycle,
                sharing="" if one.is_storage else catalog.sharing_of(one),
                unit=catalog.unit_of(one),
                resource=one.resource,
                teams=len(units),
                units=sum(units),
            )
        )
    return found


def images_by_kind() -> dict[str, list[EditableImage]]:
    """All images in the order in which users see them. One query."""
    found: dict[str, list[EditableImage]] = {}
    for one in Image.objects.select_related("successor"):
        gpus = VENDORS[one.vendor][0] if one.vendor in VENDORS else one.vendor
        needs = f"{gpus}, CUDA {one.min_cuda}" if one.min_cuda else gpus
        row = EditableImage(
            one.pk,
            one.name,
            one.version,
            one.reference,
            needs,
            one.deprecated_since,
            one.successor.name if one.successor else "",
        )
        found.setdefault(one.get_kind_display(), []).append(row)
    return dict(sorted(found.items(), reverse=True))


def trial_texts(one: GpuClass) -> tuple[str, str]:
    """What the cluster said of its device class and of its selector; "" for a class of another interface. One query for
    a DRA class.
    """
    if one.interface != GpuClass.Interface.DRA:
        return "", ""
    counted, selected = trials_of(one)
    return counted_text(counted, one.resource) if one.cluster.has_kueue else "", selector_text(selected)


def suggestions(cluster: Cluster, product: str) -> dict[str, list[str]]:
    """By field: what nodes report and other classes have. Of MIG profiles only those that `product` can have: their
    names are read from nodes and never computed. Three queries.
    """
    classes = list(GpuClass.objects.filter(cluster=cluster))
    resources = set(MirrorUnits.objects.filter(cluster_id=cluster.pk).values_list("resource", flat=True).distinct())
    products = MirrorNode.objects.filter(cluster_id=cluster.pk).annotate(product=KT(f"record__labels__{_PRODUCT}"))
    seen = {one for one in products.values_list("product", flat=True).distinct() if one}
    return {
        "vendor": sorted({one.vendor for one in classes if one.vendor}),
        "product": sorted(seen | {one.product for one in classes if one.product}),
        "resource": sorted(one for one in resources | {one.resource for one in classes} if "/" in one),
        "partition": ["none", *sorted(set(_profiles(resources, classes, product)))],
        "device_class": sorted({one.device_class for one in classes if one.device_class}),
    }


def _profiles(resources: set[str], classes: list[GpuClass], product: str) -> Iterator[str]:
    card = mig_profiles.card_of(product)
    names = {one.removeprefix(_MIG).removesuffix(".shared") for one in resources if one.startswith(_MIG)}
    for name in names | {one.partition for one in classes if one.partition != "none"}:
        if card is None or not mig_profiles.is_profile(name) or mig_profiles.has_profile(name, card):
            yield name
