"""The Celery tasks of this app. They have no Celery retries: due rows are retried (portal/core/due.py)."""

from celery import shared_task

from accounts.events import reconcile
from accounts.models import Delivery
from portal.core import due


@shared_task(name="accounts.delivery.work", ignore_result=True)
def deliver() -> None:
    due.drain(Delivery, reconcile.reconcile)
