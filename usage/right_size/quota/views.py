"""The part of a team's page Grants that suggests a smaller quota. The URL configuration passes it in."""

from __future__ import annotations

from typing import Any

from tenants.models import Tenant
from usage.right_size.quota.queries import smaller_totals


def team_context(tenant: Tenant) -> dict[str, Any]:
    return {"smaller_totals": smaller_totals(tenant)}
