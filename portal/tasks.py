"""The sweep: finds due rows whose hint was lost, every 10 s (beat). And what a worker's start brings with it."""

from celery import shared_task
from celery.signals import beat_init, task_prerun, worker_ready
from django.db import close_old_connections

from portal.core import due
from portal.ops import ops_server


@shared_task(name="portal.sweep", ignore_result=True)
def sweep() -> None:
    due.sweep()


@task_prerun.connect
def _keep_connection(**_kwargs: object) -> None:
    """As at a request's start: it is closed when it is too old, or broken and the last task failed of it."""
    close_old_connections()


@worker_ready.connect
@beat_init.connect
def _serve_internally(**_kwargs: object) -> None:
    """In the main process of worker or beat, which is the one that stays."""
    ops_server.start_ops_server()
