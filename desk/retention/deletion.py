"""Deletes the rows whose time is over, in bundles: one transaction each, after the rows were archived if they are
history. A process that ends at any line leaves the rows, or a file with them, or both, and never neither.
"""

from __future__ import annotations

import json
import time
from datetime import datetime
from functools import partial
from pathlib import Path

from django.db import connection, transaction
from django.utils import timezone
from psycopg.sql import SQL, Composed, Identifier, Literal

from desk.retention import archive
from desk.retention.archive import ArchivedRow, Deletion
from desk.retention.kinds import KINDS, Expiry, Kind

BUNDLE_ROWS = 1000


def _expiry(kind: Kind) -> Expiry:
    assert kind.expiry is not None
    return kind.expiry


# First those that need no folder, which may be full.
EXPIRING = tuple(sorted((kind for kind in KINDS if kind.expiry), key=lambda kind: _expiry(kind).is_archived))


def delete_expired(folder: Path | None, *, within_s: float | None = None) -> dict[str, int]:
    """Returns how many rows were deleted of each kind. Without a folder, kinds that are archived are left as they are.
    Ends after the first bundle that is complete when `within_s` is over.

    Raises ArchiveUnclear, and OSError if a file cannot be written.
    """
    ends_at = None if within_s is None else time.monotonic() + within_s
    deleted = dict.fromkeys((kind.name for kind in EXPIRING), 0)
    for kind in EXPIRING:
        if folder is None and _expiry(kind).is_archived:
            continue
        while (ends_at is None or time.monotonic() < ends_at) and (rows := _delete_bundle(kind, folder)):
            deleted[kind.name] += rows
    return deleted


def count_expired() -> dict[str, int]:
    found = {}
    for kind in EXPIRING:
        statement = SQL("SELECT count(*) FROM {} WHERE {}").format(Identifier(kind.tables[0]), _is_expired(kind))
        with connection.cursor() as cursor:
            cursor.execute(statement)
            found[kind.name] = int(cursor.fetchone()[0])
    return found


def _delete_bundle(kind: Kind, folder: Path | None) -> int:
    """Returns 0 if nothing is left, or another process is at it."""
    if not _expiry(kind).is_archived:
        return _delete_unread(kind)
    assert folder is not None
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_try_advisory_xact_lock(hashtext(%s))", [f"portal.retention.{kind.name}"])
            if not cursor.fetchone()[0]:
                return 0
        archive.settle(folder, kind.name, partial(_deletion_of, kind))
        rows = _locked_rows(kind)
        if not rows:
            return 0
        name = archive.write(folder, kind.name, kind.tables[0], rows)
        with connection.cursor() as cursor:
            statement = SQL("DELETE FROM {} WHERE id = ANY(%s)").format(Identifier(kind.tables[0]))
            cursor.execute(statement, [[row.key for row in rows]])
    archive.complete(folder, kind.name, name)
    return len(rows)


def _delete_unread(kind: Kind) -> int:
    """Two statements, which read only the column of the age: whose rows they are stays hidden from this role."""
    table, at = Identifier(kind.tables[0]), Identifier(kind.at)
    values = {"expired": _is_expired(kind), "table": table, "at": at, "rows": Literal(BUNDLE_ROWS)}
    # The last one of a bundle; with rows of the same time, a bundle is a little larger.
    last = SQL(
        "SELECT max({at}) FROM (SELECT {at} FROM {table} WHERE {expired} ORDER BY {at} LIMIT {rows}) AS bundle"
    ).format(**values)
    with connection.cursor() as cursor:
        cursor.execute(last)
        (until,) = cursor.fetchone()
        if until is None:
            return 0
        cursor.execute(SQL("DELETE FROM {table} WHERE {at} <= %s").format(**values), [until])
        return int(cursor.rowcount)


def _locked_rows(kind: Kind) -> list[ArchivedRow]:
    statement = SQL("""
        SELECT id, {at}, row_to_json({table})::text FROM {table} WHERE {expired}
         ORDER BY {at} LIMIT {rows} FOR UPDATE SKIP LOCKED""").format(
        table=Identifier(kind.tables[0]), at=Identifier(kind.at), expired=_is_expired(kind), rows=Literal(BUNDLE_ROWS)
    )
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return [ArchivedRow(*row) for row in cursor.fetchall()]


def _deletion_of(kind: Kind, archived: list[str]) -> Deletion:
    """A bundle is deleted as a whole, so that its rows are all there or none of them."""
    table = Identifier(kind.tables[0])
    statement = SQL("SELECT row_to_json({})::text FROM {} WHERE id = ANY(%s)").format(table, table)
    with connection.cursor() as cursor:
        cursor.execute(statement, [[json.loads(text)["id"] for text in archived]])
        there = {text for (text,) in cursor.fetchall()}
    if not there:
        return Deletion.COMMITTED
    return Deletion.NOT_COMMITTED if there == {*archived} else Deletion.UNCLEAR


def _is_expired(kind: Kind) -> Composed:
    """Rows become due at midnight UTC, so that a day has few bundles and not one for each look."""
    assert kind.kept_for is not None
    midnight = timezone.now().replace(hour=0, minute=0, second=0, microsecond=0)
    cut: datetime = midnight - kind.kept_for
    expired = SQL("{} < {}").format(Identifier(kind.at), Literal(cut))
    # The condition is a constant of kinds.py.
    condition = _expiry(kind).condition
    return SQL(" AND ").join([expired, *([SQL(condition)] if condition else [])])
