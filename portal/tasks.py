"""The sweep, which finds due rows whose hint was lost, every 10 s (beat); and signal handlers of worker and beat."""

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
    """As at the start of a request: closes a connection that is too old, or is broken and made the last task fail."""
    close_old_connections()


@worker_ready.connect
@beat_init.connect
def _serve_internally(**_kwargs: object) -> None:
    """Runs in the main process of worker or beat, which lives as long as the service."""
    ops_server.start_ops_server()
