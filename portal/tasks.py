"""The sweep, which finds due rows whose hint was lost, every 5 s (beat); and signal handlers of worker and beat."""

import os
from functools import partial
from typing import Any

from celery import shared_task
from celery.signals import beat_init, before_task_publish, task_prerun, task_received, worker_ready
from django.db import close_old_connections

from portal.core import due, hints
from portal.ops import ops_server
from portal.ops.liveness import liveness


@shared_task(name="portal.sweep", ignore_result=True)
def sweep() -> None:
    due.sweep()


@shared_task(name="portal.pulse", ignore_result=True)
def pulse() -> None:
    """Shows that this worker takes messages."""


@task_prerun.connect
def _keep_connection(**_kwargs: object) -> None:
    """As at the start of a request: closes a connection that is too old, or is broken and made the last task fail."""
    close_old_connections()


@worker_ready.connect
def _serve_worker(sender: Any, **_kwargs: object) -> None:
    """Runs in the main process of the worker, which lives as long as the service. `sender`: its consumer."""
    own_queue = f"{sender.hostname}.{os.getpid()}"
    sender.add_task_queue(own_queue)
    liveness.expect_signs(partial(_send_pulse, own_queue))
    task_received.connect(_sign)
    ops_server.start_ops_server()


@beat_init.connect
def _serve_beat(**_kwargs: object) -> None:
    liveness.expect_signs(hints.redis_connection().ping)
    before_task_publish.connect(_sign)
    ops_server.start_ops_server()


def _send_pulse(queue: str) -> None:
    hints.celery_sender().send_task("portal.pulse", queue=queue, ignore_result=True, retry=False, expires=60)


def _sign(**_kwargs: object) -> None:
    liveness.sign()
