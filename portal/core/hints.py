"""Hints: "look again". A hint may be lost, and no code relies on its content.

`worker_hint` tells the workers that a table has due rows; `page_hint` tells open pages that a namespace changed, and
`person_hints` that the notices of people did.
Both are sent after commit and swallow only the failure to reach Redis: the sweep (portal/core/due.py) and the version
comparison of the doors process find the same work a few seconds later.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Collection
from typing import TypeVar

import redis
import structlog
from celery import Celery
from django.conf import settings
from django.db import transaction

from portal.core.connections import redis_server

log = structlog.get_logger(__name__)
Made = TypeVar("Made")

# Queue of the tables whose work a user waits for; all other tables use the background queue.
PEOPLE = "people"
BACKGROUND = "background"
# A hint that nobody took is worth nothing any more: the sweep has sent others. Without an end, workers that were away
# for a night would first read all hints of that night.
HINT_LIVES_S = 60
# Begins the channel of a person; no namespace has such a name.
PERSON = "person:"


def worker_hint(label: str, *, queue: str = PEOPLE) -> None:
    """After commit: send one Celery message "there is work in `<app>.<model>`". Its task drains the table."""
    transaction.on_commit(functools.partial(_send_worker_hint, label, queue), robust=True)


def page_hint(channel: str) -> None:
    """After commit: publish on the namespace's channel. The doors process then renders that namespace again."""
    transaction.on_commit(functools.partial(_send_page_hint, channel), robust=True)


def person_hints(user_ids: Collection[int]) -> None:
    """After commit: publish on the channels of these people, in one message to Redis."""
    transaction.on_commit(functools.partial(_send_person_hints, tuple(user_ids)), robust=True)


def _send_worker_hint(label: str, queue: str) -> None:
    try:
        celery_sender().send_task(f"{label}.work", queue=queue, ignore_result=True, retry=False, expires=HINT_LIVES_S)
    except Exception as error:  # each kombu transport has its own exceptions; a lost hint is normal
        log.warning("hint_lost", hint=f"{label}.work", error=type(error).__name__)


def _send_page_hint(channel: str) -> None:
    try:
        redis_connection().publish(channel_name(channel), b"1")
    except redis.RedisError as error:
        log.warning("hint_lost", hint=f"page {channel}", error=type(error).__name__)


def _send_person_hints(user_ids: Collection[int]) -> None:
    try:
        with redis_connection().pipeline(transaction=False) as together:
            for pk in user_ids:
                together.publish(channel_name(person_channel(pk)), b"1")
            together.execute()
    except redis.RedisError as error:
        log.warning("hint_lost", hint="person", error=type(error).__name__)


def person_channel(user_id: int) -> str:
    return f"{PERSON}{user_id}"


def channel_name(channel: str) -> str:
    return f"page:{channel}"


def per_process(make: Callable[[], Made]) -> Callable[[], Made]:
    """Make the value once per process, for all its threads. With `functools.cache` alone, threads that call at the same
    time get one value each and only one is kept: a discarded Redis client closes its connections when it is deleted,
    while a pipeline made from it still waits for its response.
    """
    known, lock = functools.cache(make), threading.Lock()

    @functools.wraps(make)
    def made() -> Made:
        with lock:
            return known()

    return made


@per_process
def celery_sender() -> Celery:
    """A Celery app that only sends tasks, by name. portal.celery is the app of the workers and knows all tasks."""
    app = Celery("hints", set_as_current=False)
    app.config_from_object("django.conf:settings", namespace="CELERY")
    # `retry=False` applies to sending only: without this, the broker's library retries the connection for seconds.
    app.conf.broker_transport_options = {**app.conf.broker_transport_options, "max_retries": 0}
    return app


@per_process
def redis_connection() -> redis.Redis:
    """One pool per process."""
    return redis_server.client(settings.REDIS_URL, **redis_server.AT_ONCE)
