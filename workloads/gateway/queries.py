"""Finds the container whose log is the log of a run."""

from __future__ import annotations

from dataclasses import dataclass

from accounts.core.actor import Actor
from cluster.manifests.metadata import names_other_row
from cluster.reads import queries as read_queries
from portal.core.due import table_label
from portal.core.errors import get_or_refuse
from workloads.core.observation import log_container
from workloads.core.queries import job_name
from workloads.logs.queries import run_of
from workloads.models import Workload
from workloads.status import workers


@dataclass(frozen=True)
class LogSource:
    """The container whose log is the log of a run."""

    namespace: str
    pod: str
    container: str


def log_source(
    by: Actor, tenant: str, name: str, worker: int | None = None, number: int | None = None
) -> tuple[str, LogSource | None]:
    """Returns the namespace and the container in which this worker of the run writes; None if it has no pod. Raises
    Refused (404).

    `worker` None: the worker whose failure ended the run, otherwise the first. `number` None: the last run.
    """
    rows_ = Workload.objects.visible_to(by).filter(tenant__slug=tenant).select_related("namespace")
    workload = get_or_refuse(rows_, name=name)
    run = run_of(workload, number)
    namespace = workload.namespace
    if run is None:
        return namespace.name, None
    owner = f"{table_label(Workload)}.{workload.pk}"
    named = read_queries.pods(namespace.cluster_id, namespace=namespace.name, owner=owner, run=job_name(workload, run))
    pods = [pod for pod in named if not names_other_row(pod.labels, run.spec.get("identity", ""))]
    if worker is None:
        worker = workers.default_log_worker(pods)
    theirs = workers.by_worker(pods).get(worker, ())
    started = [(pod.name, container) for pod in theirs if (container := log_container(pod))]
    if not started:
        return namespace.name, None
    return namespace.name, LogSource(namespace.name, *started[-1])
