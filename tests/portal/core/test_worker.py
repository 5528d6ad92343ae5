"""The worker's connection to the database, between tasks."""

from __future__ import annotations

import pytest
from celery.fixups.django import DjangoWorkerFixup
from django.db import connection

from portal.celery import app


@pytest.mark.django_db(transaction=True)
def test_celery_leaves_the_connection_open_between_tasks() -> None:
    """It calls this before and after every task, and closes whatever Django's settings say unless it is told not to."""
    connection.ensure_connection()
    kept = connection.connection

    DjangoWorkerFixup(app).close_database()

    assert connection.connection is kept
    assert not kept.closed
