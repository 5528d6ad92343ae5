"""A value that a team stores for its runs, encrypted. Django finds it through workloads.models."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models.functions import Now

from tenants.models import Namespace


class TeamSecret(models.Model):
    """A value that a team stores for its runs, encrypted. `created_by`, `updated_at`: of the current value."""

    namespace = models.ForeignKey(Namespace, on_delete=models.PROTECT, related_name="secrets", db_index=False)
    name = models.CharField(max_length=100)
    sealed = models.BinaryField()
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    updated_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [models.UniqueConstraint("namespace", "name", name="secret_name_once")]

    def __str__(self) -> str:
        return self.name
