"""Deletes a Job that no run owns. Nothing else does: the portal deletes nothing by itself that no row knows."""

from __future__ import annotations

from django.db import transaction

from accounts.core.actor import Actor
from accounts.events.actions import record
from cluster.client.kube import Kube
from cluster.models import Cluster
from portal.core.errors import NOT_FOUND, Refused
from workloads.runs.objects.comparison import JobState, compared_jobs


@transaction.atomic
def delete_job(cluster: Cluster, namespace: str, name: str, *, by: Actor, kube: Kube) -> None:
    """Call it only while the mirror is current. Raises Refused: not_found (404), also for a Job that a run owns: stop
    that run instead.
    """
    found = next((job for job in compared_jobs(cluster) if (job.namespace, job.name) == (namespace, name)), None)
    if found is None or found.state is JobState.RECORDED:
        raise Refused(NOT_FOUND)
    record(by, "cluster.job_deleted", cluster, before={"job": f"{namespace}/{name}", "uid": found.uid})
    # By its uid, so that a Job of that name which a worker creates meanwhile stays.
    kube.delete("Job", name=name, namespace=namespace, uid=found.uid)
