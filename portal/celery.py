"""Celery: workers drain due tables, beat sweeps every 5 s. There are no retries, results, late acks or ETAs
(portal/core/due.py).
"""

import os
from datetime import timedelta
from typing import Any

from celery import Celery
from celery.beat import PersistentScheduler
from celery.signals import setup_logging

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")

app = Celery("portal")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
app.conf.beat_scheduler = "portal.celery:Scheduler"


class Scheduler(PersistentScheduler):
    """Sends what it sent last in the future at once: after the clock of its host was set back by an hour, Celery's own
    sends nothing for an hour.
    """

    def tick(self, *args: Any, **kwargs: Any) -> float:
        for entry in self.schedule.values():
            now = entry.default_now()
            if entry.last_run_at > now + timedelta(seconds=1):
                entry.last_run_at = now - timedelta(days=1)
                self._heap = None  # made again from the schedule
        interval: float = super().tick(*args, **kwargs)
        return interval


@setup_logging.connect
def _keep_django_logging(**_kwargs: object) -> None:
    """Without this, Celery would install its own log handlers. Django's settings configure those of structlog."""
