"""Loads times with `datetime.fromisoformat`, which is C code. Django's loader is Python, and rows have several times.

Django imports the class `DatabaseWrapper` from the module `base` of the package that `ENGINE` names.
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache
from typing import Any

from django.db.backends.postgresql import base
from psycopg.adapt import AdaptersMap, Loader
from psycopg.types.datetime import TimestamptzLoader


class DatabaseWrapper(base.DatabaseWrapper):
    def get_connection_params(self) -> dict[str, Any]:
        found = super().get_connection_params()
        return {**found, "context": _with_fast_times(found["context"])}


class UtcLoader(Loader):
    """Every connection of the portal is in UTC (`USE_TZ`, no `TIME_ZONE` of the database): PostgreSQL's text ends in
    "+00". What Python's `datetime` cannot hold is left to psycopg, which says so (DataError).
    """

    # Django compares it with its own for each cursor, and would register its loader if they differed.
    timezone = UTC

    def load(self, data: Any) -> datetime:
        try:
            return datetime.fromisoformat(str(data, "ascii"))
        except ValueError:
            return TimestamptzLoader(self.oid, self.connection).load(data)


@cache
def _with_fast_times(template: AdaptersMap) -> AdaptersMap:
    found = AdaptersMap(template)
    found.register_loader("timestamptz", UtcLoader)
    return found
