"""The prefixes below which a team may use any image."""

from __future__ import annotations

from django.db.models import QuerySet

from tenants.models import ImagePrefix


def prefixes_of(tenant_id: int) -> list[str]:
    """One query."""
    return list(ImagePrefix.objects.filter(tenant_id=tenant_id).order_by("prefix").values_list("prefix", flat=True))


def prefix_rows(tenant_id: int) -> QuerySet[ImagePrefix]:
    return ImagePrefix.objects.filter(tenant_id=tenant_id).select_related("allowed_by").order_by("prefix")
