"""Celery tasks of this app. The Pool's is in tenants/tasks.py: it needs the grants."""

from contextlib import suppress

from celery import shared_task
from django.conf import settings
from django.utils import timezone

from catalog.trials.queries import device_requests
from catalog.trials.reconcile import try_devices
from cluster.client.kube import connect
from cluster.models import Cluster
from portal.core.due import Deadline, TryLater


@shared_task(name="catalog.trials.try", ignore_result=True)
def try_device_classes() -> None:
    """One step of every trial that is due: the answer is read by a later message, and so is what failed now."""
    for cluster in Cluster.objects.filter(name=settings.CLUSTER_NAME):
        with suppress(TryLater):
            try_devices(cluster, device_requests(cluster), kube=connect(), deadline=Deadline(), now=timezone.now())
