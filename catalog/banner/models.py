"""The banner of a cluster, as a row."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from cluster.models import Cluster
from portal.core.errors import constraint_sentence


class Banner(models.Model):
    """One per cluster at a time; shown until `until`, or until it is removed."""

    cluster = models.OneToOneField(Cluster, on_delete=models.CASCADE, related_name="banner")
    text = models.CharField(max_length=300)
    until = models.DateTimeField(null=True, blank=True)
    put_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [models.CheckConstraint(condition=~Q(text=""), name="banner_text")]

    def __str__(self) -> str:
        return "banner"


constraint_sentence("banner_text", "bad_banner", "Enter the text of the banner.", field="text")
