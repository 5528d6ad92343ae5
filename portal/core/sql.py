"""Helpers for SQL written as text, used where the ORM needs longer to compose a query than PostgreSQL to answer it."""

from __future__ import annotations

import contextlib
import functools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, TypeVar, cast

from django.core.exceptions import EmptyResultSet
from django.db import DEFAULT_DB_ALIAS, connection, models
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models.base import ModelState

Row = TypeVar("Row", bound=models.Model)
# raw_decode suffices: JSON from PostgreSQL has nothing before or after it.
WITHOUT_POOLER = "Its DATABASE_URL has to name PostgreSQL itself, not a pooler."
_of_json = json.JSONDecoder().raw_decode


def columns(model: type[models.Model], of: str = "") -> str:
    """All columns, by name, so that a statement prepared before a migration works after it. `of`: a table alias."""
    prefix = f"{of}." if of else ""
    quote = connection.ops.quote_name
    return ", ".join(f"{prefix}{quote(str(field.column))}" for field in model._meta.concrete_fields)


def any_of(pks: Iterable[int]) -> tuple[str, Sequence[Any]]:
    """What stands in `= ANY(…)`, and its parameters: the statement of a QuerySet of keys, which is not sent, or a
    list.
    """
    if isinstance(pks, models.QuerySet):
        with contextlib.suppress(EmptyResultSet):  # Django knows that no row matches
            return pks.query.sql_with_params()
    return "%s", [list(pks)]


def is_key(text: str) -> bool:
    """Whether it can be a primary key. Anyone may write a longer number into a label, and PostgreSQL compares that
    with every row, or refuses it.
    """
    return text.isdecimal() and text.isascii() and int(text) < 2**63


@contextlib.contextmanager
def leaves_no_connection() -> Iterator[None]:
    """Closes the connection that the block opens in a thread that has none yet: nothing else would close it."""
    had_connection = connection.connection is not None
    try:
        yield
    finally:
        if not had_connection:
            connection.close()


@contextlib.contextmanager
def snapshot() -> Iterator[None]:
    """All reads inside see one snapshot, and writes fail. It has no effect inside an open transaction."""
    if connection.in_atomic_block:
        yield
        return
    with connection.cursor() as cursor:
        # One statement, written as text; Django would send three.
        cursor.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        try:
            yield
        finally:
            # Not ROLLBACK: psycopg would then drop all its prepared statements.
            cursor.execute("COMMIT")


def has_own_session(on: BaseDatabaseWrapper = connection) -> bool:
    """False behind a pooler, which tells its clients of a server process that does not exist. Locks and settings of a
    session then belong to whoever gets it next.
    """
    with on.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        return bool(cursor.fetchone()[0] == on.connection.info.backend_pid)


def select(model: type[Row], rest: str, values: Sequence[Any] | Mapping[str, Any] = ()) -> list[Row]:
    """Rows of the model's table. `rest`: what follows WHERE, with its order and limit."""
    with connection.cursor() as cursor:
        cursor.execute(f"{_from(model)} WHERE {rest}", values)
        return [instance(model, iter(row)) for row in cursor.fetchall()]


@functools.cache
def _from(model: type[models.Model]) -> str:
    return f"SELECT {columns(model)} FROM {model._meta.db_table}"


def instance(model: type[Row], values: Iterator[Any], known: dict[Any, Any] | None = None) -> Row:
    """Makes an instance from the next values of a result row, in the order of `columns(model)`. `known`: instances made
    before, by model and primary key; the same row then gives the same instance.
    """
    found = instance_or_none(model, values, known)
    assert found is not None, f"no {model.__name__}"
    return found


def instance_or_none(model: type[Row], values: Iterator[Any], known: dict[Any, Any] | None = None) -> Row | None:
    """As `instance`, or None where the primary key is null, as in an outer join without a match."""
    names, pk, jsons, converters = _fields(model)
    taken = list(islice(values, len(names)))
    key = taken[pk]
    if key is None:
        return None
    if known is not None and (before := known.get((model, key))) is not None:
        return cast(Row, before)
    for place in jsons:
        if (text := taken[place]) is not None:
            taken[place] = _of_json(text)[0]
    for place, convert in converters:
        taken[place] = convert(taken[place], None, connection)
    # The result of `Model.from_db`, without one call per value and without two signals that have no receiver.
    found = model.__new__(model)
    found._state = ModelState()
    found._state.adding, found._state.db = False, DEFAULT_DB_ALIAS
    found.__dict__.update(zip(names, taken, strict=True))
    if known is not None:
        known[model, key] = found
    return found


@functools.cache
def _fields(model: type[models.Model]) -> tuple[list[str], int, list[int], list[tuple[int, Any]]]:
    """Returns the attributes in the order of `columns`, the index of the primary key, the indexes of JSON fields, and
    the indexes of other converted fields with their converters.
    """
    fields = list(enumerate(model._meta.concrete_fields))
    jsons = [at for at, one in fields if type(one) is models.JSONField and one.decoder is None]
    converters = [(at, one.from_db_value) for at, one in fields if hasattr(one, "from_db_value") and at not in jsons]
    return [one.attname for _, one in fields], next(at for at, one in fields if one.primary_key), jsons, converters
