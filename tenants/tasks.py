"""Celery tasks of this app and of the Pool, which needs the grants. The retry is a column (portal/core/due.py)."""

from functools import partial

from celery import shared_task

from catalog.models import Pool
from cluster.apply.own_cluster import in_own_cluster
from cluster.client.kube import connect
from portal.core import due
from tenants.models import Namespace, Plan
from tenants.provisioning import reconcile, steps


@shared_task(name="tenants.namespace.work", ignore_result=True)
def work_namespaces() -> None:
    due.drain(Namespace, in_own_cluster(partial(steps.work_on_namespace, kube=connect())))


@shared_task(name="tenants.plan.work", ignore_result=True)
def work_plans() -> None:
    in_own = in_own_cluster(partial(steps.work_on_plan, kube=connect()), "request__tenant__namespaces__cluster")
    due.drain(Plan, in_own)


@shared_task(name="catalog.pool.work", ignore_result=True)
def work_pools() -> None:
    due.drain(Pool, in_own_cluster(partial(reconcile.reconcile_pool, kube=connect())))
