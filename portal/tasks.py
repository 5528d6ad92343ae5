"""The sweep: finds due rows whose hint was lost, every 10 s (beat)."""

from celery import shared_task

from portal import due


@shared_task(name="portal.sweep", ignore_result=True)
def sweep() -> None:
    due.sweep()
