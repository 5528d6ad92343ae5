"""Moves sequences of primary keys beyond what objects in the cluster name, so that no row gets a key that an object of
a lost row still has in its owner label. The connection is the owner's.
"""

from __future__ import annotations

from dataclasses import dataclass

from django.apps import apps
from django.db import connection, models
from psycopg.sql import SQL, Identifier, Literal

from cluster.reads import queries as mirror

# Others may write our label: a number that no portal reaches must not use up the keys.
LARGEST_STEP = 10_000_000


@dataclass(frozen=True)
class Moved:
    """`last`: the last key that was given before, None if the label's number is too high to be one of ours."""

    table: str
    seen: int
    last: int | None


def move_sequences(cluster_id: int) -> list[Moved]:
    """Those that had to be moved. May be run again. Call it only while the mirror is current."""
    found = []
    for model, seen in sorted(_highest_seen(cluster_id).items(), key=lambda one: one[0]._meta.db_table):
        table = model._meta.db_table
        last = _last_given(table)
        if seen <= last:
            continue
        is_plausible = seen - last <= LARGEST_STEP
        if is_plausible:
            with connection.cursor() as cursor:
                cursor.execute("SELECT setval(pg_get_serial_sequence(%s, 'id'), %s)", [table, seen])
        found.append(Moved(table, seen, last if is_plausible else None))
    return found


def _highest_seen(cluster_id: int) -> dict[type[models.Model], int]:
    found: dict[type[models.Model], int] = {}
    for owner in mirror.owners_seen(cluster_id):
        name, _, pk = owner.rpartition(".")
        try:
            model = apps.get_model(name)
        except (LookupError, ValueError):
            continue
        if pk.isdecimal():
            found[model] = max(found.get(model, 0), int(pk))
    return found


def _last_given(table: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute(SQL("SELECT pg_get_serial_sequence({}, 'id')").format(Literal(table)))
        schema, _, name = str(cursor.fetchone()[0]).rpartition(".")
        sequence = Identifier(*(part.strip('"') for part in (schema, name)))
        cursor.execute(
            SQL("SELECT CASE WHEN is_called THEN last_value ELSE last_value - 1 END FROM {}").format(sequence)
        )
        return int(cursor.fetchone()[0])
