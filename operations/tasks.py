"""Reconciles maintenances that are due."""

from functools import partial

from celery import shared_task

from cluster.apply.own_cluster import in_own_cluster
from cluster.client.kube import connect
from operations.maintenance.reconcile import reconcile_maintenance
from operations.models import Maintenance
from portal.core.due import drain


@shared_task(name="operations.maintenance.work", ignore_result=True)
def work_maintenances() -> None:
    drain(Maintenance, in_own_cluster(partial(reconcile_maintenance, kube=connect())))
