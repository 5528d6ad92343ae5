"""For how long the class of a run keeps logs; deletes those whose time is over, in small transactions."""

from __future__ import annotations

from django.utils import timezone

from catalog.models import GpuClass
from workloads.logs.models import RunLog
from workloads.models import Run

BATCH, BATCHES = 200, 10


def retention_days(run: Run) -> int:
    """Returns 0 if logs are not kept. One query."""
    found = GpuClass.objects.filter(cluster_id=run.workload.namespace.cluster_id, slug=run.spec["gpu_class"])
    return found.values_list("log_retention_days", flat=True).first() or 0


def delete_expired_logs() -> None:
    """At most BATCH × BATCHES rows, because it is called every minute."""
    for _number in range(BATCHES):
        expired = RunLog.objects.filter(expires_at__lte=timezone.now()).order_by("expires_at")
        pks = list(expired.values_list("pk", flat=True)[:BATCH])
        RunLog.objects.filter(pk__in=pks).delete()
        if len(pks) < BATCH:
            return
