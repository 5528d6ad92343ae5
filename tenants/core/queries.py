"""The database's clock, the lock of a namespace, and the search for teams by words."""

from __future__ import annotations

from datetime import datetime

from django.db import connection
from django.db.models import Q, QuerySet

from portal.core.errors import get_or_refuse
from tenants.models import Namespace, Tenant


def database_now() -> datetime:
    """The database's clock at this instant: not the transaction's start, which may lie before a lock was waited for."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        instant: datetime = cursor.fetchone()[0]
    return instant


def lock_namespace(pk: int) -> Namespace:
    """The namespace with its tenant, locked as decisions and the verbs of its lifecycle lock it.

    What is read after this stays so until the end of the transaction.
    """
    rows = Namespace.objects.select_for_update(of=("self",), no_key=True).select_related("tenant")
    return get_or_refuse(rows, pk=pk)


def teams_matching(found: QuerySet[Tenant], words: str) -> QuerySet[Tenant]:
    """Those with each of `words` in slug or name."""
    for word in words.split():
        found = found.filter(Q(slug__icontains=word) | Q(name__icontains=word))
    return found
