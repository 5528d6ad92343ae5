"""Celery: workers drain due tables, beat sweeps every 5 s. There are no retries, results, late acks or ETAs
(portal/core/due.py).
"""

import os

from celery import Celery
from celery.signals import setup_logging

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")

app = Celery("portal")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@setup_logging.connect
def _keep_django_logging(**_kwargs: object) -> None:
    """Without this, Celery would install its own log handlers. Django's settings configure those of structlog."""
