"""What is stored of each kind: rows, size, the oldest row, and when the next row is deleted."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection
from psycopg.sql import SQL, Composable, Identifier

from desk.retention.kinds import KINDS, Kind


@dataclass(frozen=True)
class Stored:
    """`rows`: as the last ANALYZE counted them; None: a table was never analysed. `oldest`: `at` of the oldest row;
    None: there is none, the kind has no time, or this role may not read it.
    """

    kind: Kind
    rows: int | None
    bytes_total: int
    bytes_of_indexes: int
    oldest: datetime | None

    @property
    def next_deletion(self) -> datetime | None:
        """When the oldest row is old enough. In the past: it is deleted at the next occasion."""
        return self.oldest + self.kind.kept_for if self.oldest and self.kind.kept_for else None


def read_stored() -> list[Stored]:
    """Two queries for each kind. The oldest row is found by an index, or in a table that stays small."""
    return [_stored(kind) for kind in KINDS]


def _stored(kind: Kind) -> Stored:
    ((counted, total, indexes),) = _rows(_SIZES, [list(kind.tables)])
    oldest = None
    if kind.at:
        may_read = _rows(SQL("SELECT has_column_privilege(%s, %s, 'SELECT')"), [kind.tables[0], kind.at])
        if may_read == [(True,)]:
            ((oldest,),) = _rows(_oldest(kind))
    return Stored(kind, counted, total, indexes, oldest)


def _oldest(kind: Kind) -> Composable:
    table, at = Identifier(kind.tables[0]), Identifier(kind.at)
    if not kind.order:
        return SQL("SELECT min({}) FROM {}").format(at, table)
    # Rows without the time, such as emails that were not sent, have no age.
    first = SQL("SELECT {} FROM {} WHERE {} IS NOT NULL ORDER BY {} LIMIT 1")
    return SQL("SELECT ({})").format(first.format(at, table, at, Identifier(kind.order)))


_SIZES = SQL("""
SELECT CASE WHEN bool_and(reltuples >= 0) THEN sum(reltuples)::bigint END,
       sum(pg_total_relation_size(oid))::bigint, sum(pg_indexes_size(oid))::bigint
  FROM pg_class WHERE oid = ANY(%s::regclass[])""")


def _rows(statement: Composable, values: list[Any] | None = None) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return list(cursor.fetchall())
