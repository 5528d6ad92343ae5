"""Drains the table of workloads that are due; counts once a minute what is in use."""

from functools import partial

from celery import shared_task

from cluster.kube import connect
from portal.due import work
from workloads import usage
from workloads.models import Workload
from workloads.reconcile import reconcile


@shared_task(name="workloads.workload.work", ignore_result=True)
def work_workloads() -> None:
    work(Workload, partial(reconcile, kube=connect()))


@shared_task(name="workloads.usage.sample", ignore_result=True)
def sample_usage() -> None:
    usage.sample_all()
