"""Celery tasks of this app and of the Pool, which needs the grants. The retry is a column (portal/core/due.py)."""

from functools import partial

from celery import shared_task

from catalog.models import Pool
from cluster.client.kube import connect
from portal.core import due
from tenants.models import Namespace, Plan
from tenants.provisioning import reconcile, steps


@shared_task(name="tenants.namespace.work", ignore_result=True)
def work_namespaces() -> None:
    due.drain(Namespace, partial(steps.work_on_namespace, kube=connect()))


@shared_task(name="tenants.plan.work", ignore_result=True)
def work_plans() -> None:
    due.drain(Plan, partial(steps.work_on_plan, kube=connect()))


@shared_task(name="catalog.pool.work", ignore_result=True)
def work_pools() -> None:
    due.drain(Pool, partial(reconcile.reconcile_pool, kube=connect()))
