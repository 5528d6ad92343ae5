"""Celery's doors to this app and to the Pool, which needs to know promises. Retry is a column (portal/due.py)."""

from functools import partial

from celery import shared_task

from catalog.models import Pool
from cluster.kube import connect
from portal import due
from tenants import reconcile
from tenants.models import Namespace, Plan


@shared_task(name="tenants.namespace.work", ignore_result=True)
def work_namespaces() -> None:
    due.work(Namespace, partial(reconcile.namespace, kube=connect()))


@shared_task(name="tenants.plan.work", ignore_result=True)
def work_plans() -> None:
    due.work(Plan, partial(reconcile.plan, kube=connect()))


@shared_task(name="catalog.pool.work", ignore_result=True)
def work_pools() -> None:
    due.work(Pool, partial(reconcile.pool, kube=connect()))
