"""Reconciles maintenances and adoptions that are due, and follows nodes that others cordon."""

from functools import partial

from celery import shared_task

from cluster.apply.own_cluster import in_own_cluster
from cluster.client.kube import connect
from cluster.models import Cluster
from operations.adoption.reconcile import reconcile_adoption
from operations.cordons.following import follow_cordons
from operations.maintenance.reconcile import reconcile_maintenance
from operations.models import Adoption, Maintenance
from portal.core.due import drain


@shared_task(name="operations.maintenance.work", ignore_result=True)
def work_maintenances() -> None:
    drain(Maintenance, in_own_cluster(partial(reconcile_maintenance, kube=connect())))


@shared_task(name="operations.adoption.work", ignore_result=True)
def work_adoptions() -> None:
    drain(Adoption, in_own_cluster(partial(reconcile_adoption, kube=connect()), "namespace__cluster"))


@shared_task(name="operations.cordons.follow", ignore_result=True)
def follow_all_cordons() -> None:
    for cluster in Cluster.objects.order_by("pk"):
        follow_cordons(cluster)
