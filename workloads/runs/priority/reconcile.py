"""Applies the priority of a queued run in the cluster until Kueue reports the same priority."""

from __future__ import annotations

from cluster.client.errors import ClusterRefused, Conflict, NotFound
from cluster.client.kube import Kube
from cluster.manifests.run import PRIORITY_LABEL
from cluster.models import AppliedObject
from portal.core.due import TryLater
from workloads.core.observation import Observation
from workloads.models import Run


def apply_priority(run: Run, job: AppliedObject, seen: Observation, *, kube: Kube) -> bool:
    """Applies the priority until Kueue reports it; returns False when it does. Raises TryLater if the cluster refuses
    it.
    """
    if not run.priority or seen.queue is None or seen.queue.priority_class == run.priority:
        return False
    try:
        labels = {PRIORITY_LABEL: run.priority}
        kube.relabel("Job", name=job.name, namespace=job.namespace, uid=job.uid, labels=labels)
    except (NotFound, Conflict):
        # The Job is gone, or another Job has its name: the next pass finds that.
        return True
    except ClusterRefused as refused:
        raise TryLater("priority_refused", refused.text) from refused
    return True
