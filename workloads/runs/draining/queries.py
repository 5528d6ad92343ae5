"""In which order runs that leave their nodes are queued again."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import Max, QuerySet
from django.utils import timezone

from cluster.manifests.run_spec import PRIORITIES
from workloads.core.unit_sql import goes_before, rank
from workloads.models import Run

# A pod gets 30 s to end. A run that leaves later, or never because its node does not respond, is not waited for.
TOGETHER = timedelta(seconds=60)


def waits_until(run: Run) -> datetime | None:
    """Until when at the latest a run that has left its node waits for others of the class with a higher priority, which
    leave their nodes too. One query, none for the highest priority.
    """
    if not (higher := rank(run)):
        return None
    others = _leaving_with(run).filter(goes_before(PRIORITIES[higher - 1]))
    last = others.aggregate(last=Max("drain_requested_at"))["last"]
    return last + TOGETHER if last is not None and last + TOGETHER > timezone.now() else None


def that_wait_for(run: Run) -> list[int]:
    """Keys of workloads whose runs have left their nodes, and may wait for `run`."""
    return list(_leaving_with(run).filter(drained_at__isnull=False).values_list("workload", flat=True))


def _leaving_with(run: Run) -> QuerySet[Run]:
    """Others of its class in its cluster."""
    same = {"workload__namespace__cluster": run.workload.namespace.cluster_id, "spec__gpu_class": run.spec["gpu_class"]}
    asked = Run.objects.filter(**same, drain_requested_at__isnull=False, ended_at=None, stop_requested_at=None)
    return asked.exclude(pk=run.pk)
