"""Lets days pass: PostgreSQL's clock cannot be moved, so what happened is moved into the past instead."""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta

from django.apps import apps
from django.contrib.postgres.fields import DateTimeRangeField
from django.db import connection, models


def let_pass(time: timedelta, *, apps_moved: Collection[str]) -> int:
    """Moves every moment in the tables of these apps, without the mirror. Returns the number of rows."""
    moved = 0
    for model in (one for one in apps.get_models() if one._meta.app_label in apps_moved):
        if model.__name__.startswith("Mirror"):
            continue
        changes = []
        for field in model._meta.local_concrete_fields:
            column = connection.ops.quote_name(field.column)
            if isinstance(field, DateTimeRangeField):
                changes.append(f"{column} = tstzrange(lower({column}) - %(time)s, upper({column}) - %(time)s)")
            elif isinstance(field, models.DateTimeField):
                changes.append(f"{column} = {column} - %(time)s")
        if changes:
            table = connection.ops.quote_name(model._meta.db_table)
            with connection.cursor() as cursor:
                cursor.execute(f"UPDATE {table} SET {', '.join(changes)}", {"time": time})
                moved += cursor.rowcount
    return moved
