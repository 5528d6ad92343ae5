"""Bundles that a new team can choose, with their lines."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from django.db.models import Exists, OuterRef, Q, QuerySet, prefetch_related_objects

from catalog.classes import queries as class_queries
from catalog.models import GpuClass
from tenants.models import Bundle, BundleLine


@dataclass(frozen=True)
class BundleLineRow:
    gpu_class_id: int
    slug: str
    name: str
    unit: str
    units: int


@dataclass(frozen=True)
class BundleRow:
    pk: int
    name: str
    summary: str
    days: int
    lines: tuple[BundleLineRow, ...]


def open_bundles() -> QuerySet[Bundle]:
    """Returns bundles that a new team can have: open, with lines, and only of open classes that are for everyone."""
    lines = BundleLine.objects.filter(bundle=OuterRef("pk"))
    usable = Q(gpu_class__life_cycle=GpuClass.LifeCycle.ACTIVE, gpu_class__visibility=GpuClass.Visibility.EVERYONE)
    return Bundle.objects.filter(Exists(lines), ~Exists(lines.exclude(usable)), is_open=True)


def bundle_rows(found: Collection[Bundle]) -> list[BundleRow]:
    """In the given order. Two queries."""
    rows = list(found)
    prefetch_related_objects(rows, "lines__gpu_class")
    return [bundle_row(row) for row in rows]


def bundle_row(row: Bundle) -> BundleRow:
    lines = tuple(
        BundleLineRow(
            line.gpu_class_id,
            line.gpu_class.slug,
            line.gpu_class.name,
            class_queries.unit_of(line.gpu_class),
            line.units,
        )
        for line in row.lines.all()
    )
    return BundleRow(row.pk, row.name, row.summary, row.days, lines)
