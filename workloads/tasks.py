"""Drains the table of workloads that are due."""

from functools import partial

from celery import shared_task

from cluster.kube import connect
from portal.due import work
from workloads.models import Workload
from workloads.reconcile import reconcile


@shared_task(name="workloads.workload.work", ignore_result=True)
def work_workloads() -> None:
    work(Workload, partial(reconcile, kube=connect()))
