"""Prefixes of image references below which a team may use any image. Part of tenants.models."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models.functions import Now

from portal.core.errors import constraint_sentence


class ImagePrefix(models.Model):
    """`prefix` is the result of catalog.images.image_references.parse_prefix, with a slash at its end."""

    tenant = models.ForeignKey(
        "tenants.Tenant", on_delete=models.CASCADE, related_name="image_prefixes", db_index=False
    )
    prefix = models.CharField(max_length=201)
    allowed_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+")
    allowed_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        ordering = ["prefix"]
        constraints = [models.UniqueConstraint("tenant", "prefix", name="image_prefix_once")]

    def __str__(self) -> str:
        return self.prefix


constraint_sentence("image_prefix_once", "prefix_there", "The team already has this prefix.", field="prefix")
