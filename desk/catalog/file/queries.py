"""Converts the rows of the catalog to the document of a catalog file, and gives its schema."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC
from typing import Any

from django.db import models

from catalog.file import types as file_types
from catalog.file import writer
from catalog.file.types import CatalogDocument, FieldSchema
from catalog.models import GpuClass, Image
from cluster.models import Cluster
from cluster.reads import queries as read_queries
from tenants.models import ClassAccess

# Excluded: keys and internal fields; a pause of scheduling is temporary and not kept in git.
_LEFT_OUT = ("id", "cluster", "slug", "held_since", "held_until", "held_reason")

_KINDS: dict[type[models.Field], Any] = {
    models.PositiveIntegerField: "integer",
    models.DecimalField: "decimal",
    models.BooleanField: "truth",
    models.DateField: "date",
    models.DateTimeField: "moment",
}


def export() -> str:
    """The same rows give the same text. Four queries."""
    return writer.write_document(stored_document(read_queries.current_cluster()), schema())


def schema() -> file_types.Schema:
    classes = [*_fields(GpuClass), FieldSchema("teams", "names", [])]
    return {"classes": tuple(classes), "images": tuple(_fields(Image, left_out=("id", "name")))}


def _fields(model: type[models.Model], left_out: tuple[str, ...] = _LEFT_OUT) -> Iterator[FieldSchema]:
    for one in model._meta.get_fields():
        if not isinstance(one, models.Field) or one.name in left_out:
            continue
        if isinstance(one, models.ForeignKey):
            yield FieldSchema(one.name, "text", "")
            continue
        kind = _KINDS.get(type(one), "text")
        if isinstance(one, models.JSONField):
            kind = "labels" if one.default is dict else "tolerations"
        has_default = one.has_default() or one.null
        yield FieldSchema(
            one.name,
            kind,
            one.to_python(one.get_default()) if has_default else file_types.REQUIRED,
            tuple(str(value) for value, _ in one.choices or ()),
            one.max_length,
            one.null,
        )


def stored_document(cluster: Cluster) -> CatalogDocument:
    teams: dict[int, list[str]] = defaultdict(list)
    access = ClassAccess.objects.filter(gpu_class__cluster=cluster).order_by("tenant__slug")
    for pk, slug in access.values_list("gpu_class_id", "tenant__slug"):
        teams[pk].append(slug)
    classes = GpuClass.objects.filter(cluster=cluster).select_related("successor")
    fields = schema()
    return CatalogDocument(
        classes={
            one.slug: {f.name: teams[one.pk] if f.name == "teams" else _value(one, f) for f in fields["classes"]}
            for one in classes
        },
        images={
            one.name: {f.name: _value(one, f) for f in fields["images"]}
            for one in Image.objects.select_related("successor")
        },
    )


def _value(row: GpuClass | Image, one: FieldSchema) -> Any:
    found = getattr(row, one.name)
    if one.name == "successor":
        return "" if found is None else found.slug if isinstance(found, GpuClass) else found.name
    return found.astimezone(UTC) if one.kind == "moment" and found else found
