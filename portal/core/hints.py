"""Hints: "it may be worth looking again". They may be lost; nothing they carry is relied on.

`worker_hint` tells the workers that a table has due rows, `page_hint` tells open pages that a namespace changed.
Both are sent after commit and swallow only the failure to reach Redis: the sweep (portal/core/due.py) and the version
comparison of the doors process find the same work a few seconds later.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import TypeVar

import redis
import structlog
from celery import Celery
from django.conf import settings
from django.db import transaction

log = structlog.get_logger(__name__)
Made = TypeVar("Made")

# Tables whose work a person waits for; everything else is background.
PEOPLE = "people"
BACKGROUND = "background"


def worker_hint(label: str, *, queue: str = PEOPLE) -> None:
    """After commit: one Celery message "there is work in `<app>.<model>`". The task drains the table."""
    transaction.on_commit(functools.partial(_send_worker_hint, label, queue), robust=True)


def page_hint(channel: str) -> None:
    """After commit: publish on a namespace's channel; the doors process renders that namespace again."""
    transaction.on_commit(functools.partial(_send_page_hint, channel), robust=True)


def _send_worker_hint(label: str, queue: str) -> None:
    try:
        celery_sender().send_task(f"{label}.work", queue=queue, ignore_result=True, retry=False)
    except Exception as error:  # kombu's transports raise their own families; a lost hint is a normal event
        log.warning("hint_lost", hint=f"{label}.work", error=type(error).__name__)


def _send_page_hint(channel: str) -> None:
    try:
        redis_connection().publish(channel_name(channel), b"1")
    except redis.RedisError as error:
        log.warning("hint_lost", hint=f"page {channel}", error=type(error).__name__)


def channel_name(channel: str) -> str:
    return f"page:{channel}"


def per_process(make: Callable[[], Made]) -> Callable[[], Made]:
    """Of each process, for all its threads. `functools.cache` alone gives those that come together one each, and keeps
    one: another client closes its connections as it goes, while a pipeline made of it is still waiting for its answer.
    """
    known, lock = functools.cache(make), threading.Lock()

    @functools.wraps(make)
    def made() -> Made:
        with lock:
            return known()

    return made


@per_process
def celery_sender() -> Celery:
    """Sends by task name only; portal.celery is the app of workers, and knows all tasks."""
    app = Celery("hints", set_as_current=False)
    app.config_from_object("django.conf:settings", namespace="CELERY")
    # `retry=False` is about sending: without this the broker's library tries for seconds to connect.
    app.conf.broker_transport_options = {**app.conf.broker_transport_options, "max_retries": 0}
    return app


@per_process
def redis_connection() -> redis.Redis:
    """One pool per process. Time-outs of 1 s: a silent Redis must not hold a page."""
    return redis.Redis.from_url(settings.REDIS_URL, socket_timeout=1, socket_connect_timeout=1)
