"""Drains the tables of workloads, volumes and idle notebooks that are due; counts once a minute what is in use, keeps
what is told of starts, and finds every few seconds the notebooks of people who may not launch any more.
"""

from functools import partial

from celery import shared_task

from cluster.kube import connect
from portal.due import work
from workloads import following, idle, leaving, predicting, usage, volumes
from workloads.models import NotebookWatch, Volume, Workload


@shared_task(name="workloads.workload.work", ignore_result=True)
def work_workloads() -> None:
    work(Workload, partial(following.reconcile, kube=connect()))


@shared_task(name="workloads.volume.work", ignore_result=True)
def work_volumes() -> None:
    work(Volume, partial(volumes.reconcile, kube=connect()))


@shared_task(name="workloads.notebookwatch.work", ignore_result=True)
def work_notebook_watches() -> None:
    work(NotebookWatch, idle.look)


@shared_task(name="workloads.usage.sample", ignore_result=True)
def sample_usage() -> None:
    usage.sample_all()


@shared_task(name="workloads.predicting.predict", ignore_result=True)
def predict_starts() -> None:
    predicting.predict_all()


@shared_task(name="workloads.leaving.wake", ignore_result=True)
def wake_orphans() -> None:
    leaving.wake_orphans()
