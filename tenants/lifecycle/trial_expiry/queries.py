"""Since when nobody uses a trial."""

from __future__ import annotations

from datetime import datetime

from django.db.models import Max

from tenants.grants.queries import OVER_AT
from tenants.models import Grant, Namespace, QuotaLine, Tenant


def idle_since(row: Namespace, at: datetime) -> datetime | None:
    """None: it is used. Runs are asked for by the name of their relation, since what runs is known further up."""
    team = Tenant.objects.filter(pk=row.tenant_id)
    runs = team.filter(workloads__runs__isnull=False)
    waits = QuotaLine.objects.filter(tenant_id=row.tenant_id, state=QuotaLine.State.PENDING)
    if runs.filter(workloads__runs__ended_at=None).exists() or waits.exists():
        return None
    last_run = runs.aggregate(at=Max("workloads__runs__ended_at"))["at"]
    last_grant = Grant.objects.filter(tenant_id=row.tenant_id).aggregate(at=Max(OVER_AT))["at"]
    found = max((moment for moment in (last_run, last_grant) if moment is not None), default=None)
    return found if found is not None and found <= at else None
