"""The sweep: finds due rows whose hint was lost, every 10 s (beat). And what a worker's start brings with it."""

from celery import shared_task
from celery.signals import beat_init, worker_ready

from portal import due, internal


@shared_task(name="portal.sweep", ignore_result=True)
def sweep() -> None:
    due.sweep()


@worker_ready.connect
@beat_init.connect
def _serve_internally(**_kwargs: object) -> None:
    """In the main process of worker or beat, which is the one that stays."""
    internal.serve()
