"""Tables of everybody × every door: what is there whole, in one statement, and everybody signed in once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from http.cookies import SimpleCookie

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Model
from django.test import Client

from accounts.models import User

_kept: dict[int, tuple[Client, str]] = {}


def rows_of(*models: type[Model]) -> str:
    """Every row with all its columns, as the database writes them: to compare, not to read."""
    quote = connection.ops.quote_name
    keys = {model: ", ".join(f"one.{quote(field.column)}" for field in model._meta.pk_fields) for model in models}
    tables = ", ".join(
        f"(SELECT json_agg(one ORDER BY {keys[model]}) FROM {quote(model._meta.db_table)} one)" for model in models
    )
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT json_build_array({tables})::text")
        return str(cursor.fetchone()[0])


@contextmanager
def undone() -> Iterator[None]:
    """What is written inside was never there."""
    with transaction.atomic():
        try:
            yield
        finally:
            transaction.set_rollback(True)


@contextmanager
def signed_in_once(people: Iterable[User]) -> Iterator[None]:
    """Signing in takes longer than most of what is asked afterwards. Inside, `visit` goes on with these sessions."""
    for who in people:
        client = Client()
        client.force_login(who)
        _kept[who.pk] = client, client.cookies[settings.SESSION_COOKIE_NAME].value
    try:
        yield
    finally:
        _kept.clear()


def visit(who: User | None) -> Client:
    """As a browser that was opened just now: nothing of an earlier visit but the session."""
    if who is None:
        return Client()
    client, session = _kept[who.pk]
    client.cookies = SimpleCookie({settings.SESSION_COOKIE_NAME: session})
    return client
