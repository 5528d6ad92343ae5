"""Searches tables for values that they must not contain."""

from __future__ import annotations

from django.db import connection

from workloads.credentials.secrets.models import TeamSecret


def everything_in_the_database() -> str:
    """Returns every row of every table as text, as this transaction sees it."""
    with connection.cursor() as cursor:
        tables = connection.introspection.table_names(cursor)
        assert TeamSecret._meta.db_table in tables
        found = []
        for table in tables:
            cursor.execute(f"SELECT coalesce(string_agg(one::text, chr(10)), '') FROM \"{table}\" one")
            found.append(cursor.fetchone()[0])
    return "\n".join(found)
