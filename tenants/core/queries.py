"""The database's clock, the lock of a namespace, and the search for teams by words."""

from __future__ import annotations

from datetime import datetime

from django.db import connection
from django.db.models import Q, QuerySet

from portal.core.errors import get_or_refuse
from tenants.models import Namespace, Tenant


def database_now() -> datetime:
    """Returns the database's clock now, not at the transaction's start, which may lie before a wait for a lock."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        instant: datetime = cursor.fetchone()[0]
    return instant


def lock_namespace(pk: int) -> Namespace:
    """Returns the namespace with its team, locked in the same way as by decisions and lifecycle actions.

    What is read after this does not change until the end of the transaction.
    """
    rows = Namespace.objects.select_for_update(of=("self",), no_key=True).select_related("tenant")
    return get_or_refuse(rows, pk=pk)


def teams_matching(found: QuerySet[Tenant], words: str) -> QuerySet[Tenant]:
    """Returns teams with each of `words` in slug or name."""
    for word in words.split():
        found = found.filter(Q(slug__icontains=word) | Q(name__icontains=word))
    return found
