"""For statements written as text, where the ORM would take longer to compose them than PostgreSQL to answer."""

from __future__ import annotations

from django.db import connection, models


def columns(model: type[models.Model], of: str = "") -> str:
    """All columns, by name: a statement prepared before a migration goes on working after it. `of`: an alias."""
    prefix = f"{of}." if of else ""
    quote = connection.ops.quote_name
    return ", ".join(f"{prefix}{quote(str(field.column))}" for field in model._meta.concrete_fields)
