"""Sets a run to the states that launch and watcher would write."""

from __future__ import annotations

from devcluster.client.kube import Api
from workloads.core import workload_sql
from workloads.models import Run, Workload
from workloads.status import queries as status_queries
from workloads.status import workload_row
from workloads.status.types import Phase


def shown(name: str) -> workload_row.WorkloadRow:
    return status_queries.workload_rows(workload_sql.with_related(Workload.objects.filter(name=name)))[0]


def run_of(name: str) -> Run:
    return Run.objects.filter(workload__name=name).latest("number")


def is_running(name: str) -> bool:
    """Sets pod, Workload and Run to running: the watcher reads each of them by its own watch."""
    run = run_of(name)
    return bool(run.admitted_at and run.started_at) and shown(name).status.phase is Phase.RUNNING


def is_ready(name: str) -> bool:
    run = run_of(name)
    return bool(run.admitted_at and run.ready_at) and shown(name).status.phase is Phase.READY


def named(admin: Api, resource: str, namespace: str) -> list[str]:
    return sorted(item["metadata"]["name"] for item in admin.list(resource, namespace=namespace))
