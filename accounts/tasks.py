"""Celery's doors to this app. Retry is a column (portal/due.py)."""

from celery import shared_task

from accounts import reconcile
from accounts.models import Delivery
from portal import due


@shared_task(name="accounts.delivery.work", ignore_result=True)
def deliver() -> None:
    due.work(Delivery, reconcile.reconcile)
