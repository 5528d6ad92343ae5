"""Tests run with the rights of the processes: a request with those of web, a task with the worker's, and processes that
tests start with their own. What a test itself prepares and reads is the owner's.

The connection is the same, so that a test's transaction is: it takes the role for the time of the call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any
from unittest import mock

import psycopg
from django.core.handlers.base import BaseHandler
from django.db import connection

from accounts.events import reconcile as deliveries
from desk.installation.rights import ROLES
from desk.retention import deletion
from portal.core import due
from tenants.provisioning import reconcile as provisioning
from tenants.provisioning import steps
from usage.samples import sampling
from workloads.forecast import prediction_log
from workloads.lifetime import ends, offboarding
from workloads.lifetime.idle import reconcile as idle
from workloads.logs import retention
from workloads.runs import reconcile as runs
from workloads.runs import restart
from workloads.storage import reconcile as volumes

CALLS: tuple[tuple[Any, str, str], ...] = (
    (BaseHandler, "get_response", "web"),
    (due, "claim", "worker"),
    (due, "run_claimed", "worker"),
    (deliveries, "reconcile", "worker"),
    (steps, "work_on_namespace", "worker"),
    (steps, "work_on_plan", "worker"),
    (provisioning, "reconcile_pool", "worker"),
    (restart, "reconcile_and_restart", "worker"),
    (runs, "reconcile", "worker"),
    (volumes, "reconcile", "worker"),
    (idle, "check_idle", "worker"),
    (sampling, "sample_all", "worker"),
    (retention, "delete_expired_logs", "worker"),
    (prediction_log, "log_predictions", "worker"),
    (offboarding, "wake_orphaned_notebooks", "worker"),
    (offboarding, "wake_suspended_notebooks", "worker"),
    (ends, "wake_ended_runs", "worker"),
    (deletion, "delete_expired", "worker"),
)


@contextmanager
def in_role(process: str) -> Iterator[None]:
    """Nested roles: the outer one stays, as an action that a test calls inside a task does."""
    try:
        connection.ensure_connection()
    except RuntimeError:  # the test allows no database
        yield
        return
    raw = connection.connection
    if raw.execute("SELECT current_user = session_user").fetchone() != (True,):
        yield
        return
    raw.execute(f"SET ROLE {ROLES[process]}")
    try:
        yield
    finally:
        if connection.connection is raw and not raw.closed:
            _reset(raw)


@contextmanager
def as_owner() -> Iterator[None]:
    """For what a test does in the middle of a call, in the place of another process."""
    raw = connection.connection
    (role,) = raw.execute("SELECT current_user").fetchone()
    raw.execute("RESET ROLE")
    yield
    raw.execute(f"SET ROLE {role}")


@contextmanager
def rights_of_processes() -> Iterator[None]:
    with ExitStack() as stack:
        for owner, name, process in CALLS:
            stack.enter_context(mock.patch.object(owner, name, _with_role(getattr(owner, name), process)))
        yield


def _with_role(call: Callable[..., Any], process: str) -> Callable[..., Any]:
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        with in_role(process):
            return call(*args, **kwargs)

    return wrapped


def _reset(raw: Any) -> None:
    # In a failed transaction, the rollback that has to follow takes the role back, too.
    with suppress(psycopg.errors.InFailedSqlTransaction):
        raw.execute("RESET ROLE")
