"""Asks that runs are moved off their nodes."""

from __future__ import annotations

from collections.abc import Collection

from django.db import transaction
from django.db.models.functions import Now

from accounts.core.actor import Actor
from accounts.events.actions import record
from portal.core.due import touch
from portal.core.hints import page_hint
from workloads.models import Run, Workload


@transaction.atomic
def request_drain(run_ids: Collection[int], *, reason: str, by: Actor) -> int:
    """Asks it of those that run and are not asked already; returns their number. `reason` becomes a part of sentences
    and ends with a period, for example "Maintenance of node a100-1: new driver."

    They end now: no time limit or checkpoint is waited for.
    """
    asked = Run.objects.filter(pk__in=run_ids, ended_at=None, stop_requested_at=None, drain_requested_at=None)
    found = list(
        asked.select_for_update(no_key=True, of=("self",)).select_related("workload__namespace", "workload__tenant")
    )
    for run in found:
        Run.objects.filter(pk=run.pk).update(drain_requested_at=Now(), drained_at=None, drain_reason=reason)
        touch(Workload, run.workload_id)
        page_hint(run.workload.namespace.name)
        after = {"run": run.number, "reason": reason}
        record(by, "workload.drain_requested", run.workload, tenant=run.workload.tenant.slug, after=after)
    return len(found)
