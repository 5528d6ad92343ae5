"""Rows that are due."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import connection
from django.db.models.functions import Now

from cluster.models import Cluster
from tenants.models import Namespace
from tests.support.rows import make


def due_row(cluster: Cluster, slug: str, *, since_s: float = 60) -> Namespace:
    row = make.tenant(cluster, slug=slug).namespaces.get()
    Namespace.objects.filter(pk=row.pk).update(due_at=Now() - timedelta(seconds=since_s))
    row.refresh_from_db()
    return row


def in_s(at: datetime) -> float:
    """Returns the seconds from now until `at`, by the database's clock."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT extract(epoch FROM %s - statement_timestamp())", [at])
        return float(cursor.fetchone()[0])
