"""Reconciles workloads, volumes and idle notebooks that are due. Once a minute it logs start estimates, updates
allocations, deletes expired logs and finds notebooks of users who may no longer launch; every few seconds those of
suspended accounts, and runs whose class or team has ended.
"""

from functools import partial

from celery import shared_task

from cluster.apply.own_cluster import in_own_cluster
from cluster.client.kube import connect
from cluster.models import Cluster
from portal.core.due import drain
from workloads.allocations import outside_pods
from workloads.allocations import recording as allocation_recording
from workloads.forecast import prediction_log
from workloads.lifetime import ends, offboarding
from workloads.lifetime.idle import reconcile as idle_reconcile
from workloads.logs import retention as log_retention
from workloads.models import NotebookWatch, Volume, Workload
from workloads.runs import restart
from workloads.storage import reconcile as storage_reconcile


@shared_task(name="workloads.workload.work", ignore_result=True)
def work_workloads() -> None:
    drain(Workload, in_own_cluster(partial(restart.reconcile_and_restart, kube=connect()), "namespace__cluster"))


@shared_task(name="workloads.volume.work", ignore_result=True)
def work_volumes() -> None:
    drain(Volume, in_own_cluster(partial(storage_reconcile.reconcile, kube=connect()), "namespace__cluster"))


@shared_task(name="workloads.notebookwatch.work", ignore_result=True)
def work_notebook_watches() -> None:
    drain(NotebookWatch, idle_reconcile.check_idle)


@shared_task(name="workloads.allocations.update", ignore_result=True)
def update_allocations() -> None:
    allocation_recording.correct_ends()
    for cluster in Cluster.objects.order_by("pk"):
        outside_pods.record_outside_pods(cluster)


@shared_task(name="workloads.logs.delete_expired", ignore_result=True)
def delete_expired_logs() -> None:
    log_retention.delete_expired_logs()


@shared_task(name="workloads.predicting.predict", ignore_result=True)
def predict_starts() -> None:
    prediction_log.log_predictions()


@shared_task(name="workloads.leaving.wake", ignore_result=True)
def wake_ended_runs() -> None:
    offboarding.wake_suspended_notebooks()
    ends.wake_ended_runs()


@shared_task(name="workloads.orphans.wake", ignore_result=True)
def wake_orphans() -> None:
    offboarding.wake_orphaned_notebooks()
