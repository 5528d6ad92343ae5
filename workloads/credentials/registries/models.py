"""A team's credentials for a registry. Django finds it through workloads.models."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models.functions import Now

from tenants.models import Namespace


class RegistryCredential(models.Model):
    """User name and password for the registry at this host, encrypted together. `created_by`, `updated_at`: of the
    current ones.
    """

    namespace = models.ForeignKey(Namespace, on_delete=models.PROTECT, related_name="registries", db_index=False)
    registry = models.CharField(max_length=200)
    sealed = models.BinaryField()
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    updated_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [models.UniqueConstraint("namespace", "registry", name="registry_once")]

    def __str__(self) -> str:
        return self.registry
