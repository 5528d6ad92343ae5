"""The database's clock, and the search for teams by words."""

from __future__ import annotations

from datetime import datetime

from django.db import connection
from django.db.models import Q, QuerySet

from tenants.models import Tenant


def database_now() -> datetime:
    """The database's clock at this instant: not the transaction's start, which may lie before a lock was waited for."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        instant: datetime = cursor.fetchone()[0]
    return instant


def teams_matching(found: QuerySet[Tenant], words: str) -> QuerySet[Tenant]:
    """Those with each of `words` in slug or name."""
    for word in words.split():
        found = found.filter(Q(slug__icontains=word) | Q(name__icontains=word))
    return found
