"""Times are read by psycopg's own loader, in C where it has one. Django's is Python, and every row has several times.

Every connection is in UTC (`USE_TZ`, and no `TIME_ZONE` of the database), which is what both then give.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from django.db.backends.postgresql import base
from psycopg.adapt import AdaptersMap
from psycopg.types.datetime import TimestamptzLoader


class DatabaseWrapper(base.DatabaseWrapper):
    def get_connection_params(self) -> dict[str, Any]:
        found = super().get_connection_params()
        return {**found, "context": _in_utc(found["context"])}

    def create_cursor(self, name: str | None = None) -> Any:
        """Django would look at each cursor whether its loader is of another zone, and a second time whether a loop
        runs: `cursor` has asked.
        """
        if name:
            return self.connection.cursor(name, scrollable=False, withhold=self.connection.autocommit)
        return self.connection.cursor()


@cache
def _in_utc(template: AdaptersMap) -> AdaptersMap:
    found = AdaptersMap(template)
    found.register_loader("timestamptz", TimestamptzLoader)
    return found
