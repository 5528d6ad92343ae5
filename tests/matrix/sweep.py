"""Sends every request of the table in every role and reports each answer that differs from the table."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from django.apps import apps
from django.conf import settings
from django.db import connection
from django.http import HttpResponse
from django.shortcuts import resolve_url
from django.urls import get_resolver

from accounts.models import Event
from accounts.rest.permissions import scopes_of
from tests.matrix.bodies import body
from tests.matrix.tables.policy import DEAD, RELATIONS, REMOVED, ROLES, STAFF, STATUS, TEAM, TOKENS, Row, expected
from tests.matrix.world import CANARY, World, base
from tests.support.http.contract import query_of
from tests.support.http.routes import routes
from tests.support.http.visits import undone

OURS = ("accounts", "catalog", "cluster", "tenants", "workloads", "usage", "operations")
# Events are compared separately; the watcher owns the mirror.
TABLES = [
    model._meta.db_table
    for app in OURS
    for model in apps.get_app_config(app).get_models()
    if model is not Event and not model.__name__.startswith("Mirror")
]
NAMED = {pattern.name: (route, pattern) for route, pattern in routes(get_resolver().url_patterns) if pattern.name}
ROUTES = {name: route for name, (route, _pattern) in NAMED.items()}
VIEWS = {name: pattern.callback for name, (_route, pattern) in NAMED.items()}


@dataclass
class Found:
    cases: int = 0
    wrong: dict[str, Any] = field(default_factory=dict)
    codes: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class Before:
    rows: list[str]
    events: int


def sweep(rows: Iterable[Row], world: World, *, roles: Collection[str] = ROLES, whole: bool = False) -> Found:
    """`whole`: also sends the cases whose answer is given before the object is looked up and so cannot depend on it."""
    found, rows = Found(), list(rows)
    before = Before(state(), Event.objects.count())
    written = tuples_written()
    samples = {id(row) for row in first_of_each_way_in(rows)}
    for row in rows:
        for role in roles_asking(row, is_sample=whole or id(row) in samples):
            if role not in roles:
                continue
            for relation in RELATIONS:
                values = world.address(row.about, relation, base(role))
                if values is None or not (whole or relation in asked_about(row, role, world)):
                    continue
                found.cases += 1
                case = f"{row.method} {row.route}: {role}, {relation}"
                codes = expected(row, role, relation)
                found.codes |= codes
                with undone():
                    answer = ask(row, world, role, values)
                    written_before, written = written, tuples_written()
                    has_written = written != written_before
                    problem = told(answer, row, codes) or leaked(answer, role) or done(row, codes, before, has_written)
                if problem:
                    found.wrong[case] = problem
    return found


def is_nobody(row: Row, role: str) -> bool:
    """Whether the request is refused by authentication and scope alone, before its object is looked up."""
    return role in DEAD or (
        role in TOKENS and (not row.is_api or row.scope not in ("any", role.removeprefix("token ")))
    )


def roles_asking(row: Row, *, is_sample: bool) -> tuple[str, ...]:
    """Returns the roles that send this row's request. test_way_in.py shows that authentication and scopes are the same
    for all addresses. So roles that authentication or scope refuses send only a sample; "anonymous" sends everything.
    """
    return tuple(role for role in ROLES if is_sample or role == "anonymous" or not is_nobody(row, role))


def first_of_each_way_in(rows: Iterable[Row]) -> list[Row]:
    """Returns the sample. API: one row for each method and scopes. Pages have own views: one row for each module."""
    found: dict[object, Row] = {}
    for row in rows:
        way = (row.method, scopes(row)) if row.is_api else VIEWS[row.route].__module__
        found.setdefault((way, bool(row.open_because)), row)
    return list(found.values())


def scopes(row: Row) -> tuple[str, ...]:
    """Scopes of which the view needs one; the action decides which one it needs."""
    return () if row.open_because else scopes_of(VIEWS[row.route].cls, row.method)


def asked_about(row: Row, role: str, world: World) -> list[str]:
    if is_nobody(row, role):
        return ["own", "others"]
    return [relation for relation in RELATIONS if not is_asked_elsewhere(row, role, relation, world)]


def is_asked_elsewhere(row: Row, role: str, relation: str, world: World) -> bool:
    """Whether another relation covers this case. For reading, "own" and "others" (a colleague's) are one case where the
    table expects the same answer of both; for staff, so are "own" and "foreign". Objects that do not exist are
    requested by one role of the team, one of the staff and by tokens, where the answer is not_found alone.
    """
    told = expected(row, role, relation)
    if relation in ("deleted", "random"):
        return told == {"not_found"} and role in (*TEAM, *STAFF, REMOVED) and role not in ("owner", "admin")
    twice, instead = ("own", "foreign") if role in STAFF else ("others", "own")
    if relation != twice or row.method != "GET" or world.address(row.about, instead, base(role)) is None:
        return False
    return told == expected(row, role, instead)


def path_of(name: str, values: dict[str, str]) -> str:
    return "/" + re.sub(r"<(?:\w+:)?(\w+)>", lambda found: values.get(found[1], "1"), ROUTES[name])


def ask(row: Row, world: World, role: str, values: dict[str, str], method: str = "") -> HttpResponse:
    path, sent = path_of(row.route, values), body(row.body, world, values)
    client, method = world.client(role), method or row.method
    if row.is_api:
        query = query_of(method, ROUTES[row.route], **values)
        return client.generic(method, path + query, json.dumps(sent), content_type="application/json")  # type: ignore[return-value]
    form = urlencode(sent, doseq=True)
    return client.generic(method, path, form, content_type="application/x-www-form-urlencoded")  # type: ignore[return-value]


def told(answer: HttpResponse, row: Row, codes: Collection[str]) -> Any:
    status = answer.status_code
    if "" in codes:
        return None if status in row.statuses else (status, text_of(answer))
    if row.is_api:
        said = json.loads(answer.content).get("code", "") if answer.content else ""
        right = said in codes and status >= 400 and status == STATUS.get(said, status)
        return None if right else (status, said, f"not {sorted(codes)}")
    sent_to = answer.headers.get("Location", "").partition("?")[0]
    if "not_signed_in" in codes:
        return None if (status, sent_to) == (302, resolve_url(settings.LOGIN_URL)) else (status, sent_to)
    wanted = {STATUS[code] for code in codes if code in STATUS} or {409, 422}
    return None if status in wanted else (status, f"not {sorted(codes)}", sent_to, text_of(answer))


def leaked(answer: HttpResponse, role: str) -> Any:
    if base(role) in STAFF or CANARY.encode() not in answer.content:
        return None
    return "shows what is of another team"


def done(row: Row, codes: Collection[str], before: Before, has_written: bool) -> Any:
    """Returns a problem unless nothing changed, or exactly what the row declares was done and recorded."""
    is_done = "" in codes
    if not is_done and not has_written:
        return None
    events = before.events
    verbs = list(Event.objects.order_by("id").values_list("verb", flat=True)[events:])
    changed = [table for table, one, other in zip(TABLES, before.rows, state(), strict=True) if one != other]
    wanted = sorted(row.verbs) if is_done else []
    if sorted(verbs) != wanted:
        return f"Events {verbs}, not {wanted}"
    if bool(changed) is not (row.writes and is_done):
        return f"changed: {changed}"
    return None


def tuples_written() -> int:
    """The number of tuples written in this transaction so far, rolled back or not: if it is unchanged, no row has
    changed.

    Reads the statistics by table number: the view pg_stat_xact_user_tables goes through all tables and indexes first
    and takes three times as long.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT sum(pg_stat_get_xact_tuples_inserted(one) + pg_stat_get_xact_tuples_updated(one)"
            " + pg_stat_get_xact_tuples_deleted(one)) FROM unnest(%s::oid[]) one",
            [_numbers()],
        )
        return int(cursor.fetchone()[0] or 0)


@functools.cache
def _numbers() -> list[int]:
    tables = [*TABLES, Event._meta.db_table]
    with connection.cursor() as cursor:
        cursor.execute("SELECT name::regclass::oid::bigint FROM unnest(%s::text[]) name", [tables])
        return [number for (number,) in cursor.fetchall()]


def state() -> list[str]:
    """A digest of each table, which differs when a row differs."""
    parts = (f"(SELECT md5(string_agg(one::text, '' ORDER BY one::text)) FROM {table} one)" for table in TABLES)
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT ARRAY[{', '.join(parts)}]")
        return list(cursor.fetchone()[0])


def text_of(answer: HttpResponse) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", answer.content.decode()))[:200]
