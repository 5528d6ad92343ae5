"""Whether a short name for a team is free."""

from __future__ import annotations

from cluster.manifests.names import dns_label
from portal.core.errors import Refusal
from tenants.models import Namespace, Tenant
from tenants.onboarding.teams.policy import SLUG_TAKEN


def slug_taken_refusal(slug: str) -> Refusal | None:
    """Two queries."""
    is_taken = Tenant.objects.filter(slug=slug).exists() or Namespace.objects.filter(name=dns_label(slug)).exists()
    return SLUG_TAKEN if is_taken else None
