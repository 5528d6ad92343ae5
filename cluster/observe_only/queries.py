"""Reads whether the cluster of this installation is observed only, and which work waits for the end of that."""

from __future__ import annotations

from dataclasses import dataclass

from django.conf import settings
from django.db.models import QuerySet

from cluster.models import Cluster
from portal.core import due
from portal.core.sql import leaves_no_connection

# The code of a row whose last attempt ended at a write that was not sent.
WAITING = "observe_only"
SHOWN = 50


@dataclass(frozen=True)
class WaitingRow:
    """`text`: the first write that was not sent."""

    row: str
    text: str


@dataclass(frozen=True)
class WaitingWork:
    """`rows`: the first of them."""

    count: int
    rows: list[WaitingRow]


def observed_clusters(name: str) -> QuerySet[Cluster]:
    """The cluster of this name if it is observed only, else none, to be a part of another query."""
    return Cluster.objects.filter(name=name, observe_only_since__isnull=False)


def is_observe_only() -> bool:
    """One query, asked before each write. A thread that has no connection yet closes the one that this opens."""
    with leaves_no_connection():
        return observed_clusters(settings.CLUSTER_NAME).exists()


def waiting_work() -> WaitingWork:
    """Two queries per Due table."""
    count, rows = 0, []
    for model in due.due_models():
        found = model._base_manager.filter(error_code=WAITING)
        count += found.count()
        label = due.table_label(model)
        rows += [WaitingRow(f"{label} {row}", row.error_text) for row in found.order_by("pk")[:SHOWN]]
    return WaitingWork(count, rows[:SHOWN])
