"""Sets the Workload of a run to inactive until Kueue has its units back and its pods are gone, and to active again.

Its Job is suspended, and its pods get their grace period. Kueue orders a queue by when it first saw a Workload, so the
run comes before those that were queued later; what it gave up is free for those queued at that moment.

Kueue has them back when the pods begin to end. The Job creates no other pod before they have ended, which nothing
confirms on a node that does not respond: a run that was admitted again by then would hold units and use none.

Runs that leave at the same time are queued again in the order of their priority: one that comes first would take units
that another one then takes from it.

Every step follows from the row and the mirror, so that a worker that dies loses none and repeats none with an effect.
"""

from __future__ import annotations

from datetime import datetime

from django.db.models.functions import Now

from cluster.client.errors import ClusterRefused, Conflict, NotFound
from cluster.client.kube import Kube
from cluster.reads.observed import KueueWorkload
from portal.core.due import TryLater, wake
from portal.core.hints import page_hint
from workloads.core.observation import Observation
from workloads.models import Run, Workload
from workloads.runs.draining.queries import that_wait_for, waits_until


def apply_drain(run: Run, seen: Observation, *, kube: Kube) -> datetime | None:
    """Returns when to look again at the latest, None if only a change matters. Raises TryLater if the cluster refuses
    it. Without a Workload nothing is done: no queue knows the run.
    """
    queue = seen.queue
    if run.drain_requested_at is None or queue is None:
        return None
    if run.drained_at is None:
        if queue.is_true("QuotaReserved"):
            if queue.active:
                _set_active(queue, False, kube=kube)
        elif any(pod.is_on_a_node for pod in seen.pods):
            return None
        elif queue.active:
            # It left its node for another reason before.
            _end(run)
        else:
            _store(run, drained_at=Now())
    if run.drained_at is not None:
        if queue.active:
            _end(run)
        elif (until := waits_until(run)) is not None:
            return until
        else:
            _set_active(queue, True, kube=kube)
    return None


def _end(run: Run) -> None:
    _store(run, drain_requested_at=None, drained_at=None, drain_reason="")
    wake(Workload, that_wait_for(run))


def _set_active(queue: KueueWorkload, is_active: bool, *, kube: Kube) -> None:
    body = {"metadata": {"uid": queue.uid}, "spec": {"active": is_active}}
    try:
        kube.merge("Workload", name=queue.name, namespace=queue.namespace, body=body)
    except (NotFound, Conflict):
        # The Workload is gone, or another one has its name: the next pass finds that.
        return
    except ClusterRefused as refused:
        raise TryLater("drain_refused", refused.text) from refused


def _store(run: Run, **columns: object) -> None:
    Run.objects.filter(pk=run.pk).update(**columns)
    run.refresh_from_db(fields=list(columns))
    page_hint(run.workload.namespace.name)
