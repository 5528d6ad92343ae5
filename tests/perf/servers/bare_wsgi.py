"""The minimal application that answers a call with the same SQL: the statements of a recorded call, and its answer.

It uses psycopg as the portal does: a pool, server-side binding, statements prepared after three executions.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from psycopg_pool import ConnectionPool

StartResponse = Callable[[str, list[tuple[str, str]]], object]

with Path(os.environ["RECORDED"]).open("rb") as _file:
    CALLS: dict[str, Any] = pickle.load(_file)
POOL = ConnectionPool(
    os.environ["DATABASE_URL"], min_size=1, max_size=8, open=False, kwargs={"autocommit": True, "prepare_threshold": 3}
)


def application(environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
    if environ["PATH_INFO"] == "/livez":
        start_response("200 OK", [("Content-Length", "0")])
        return [b""]
    POOL.open()
    length = int(environ.get("CONTENT_LENGTH") or 0)
    environ["wsgi.input"].read(length)
    statements, status, headers, body = CALLS[f"{environ['REQUEST_METHOD']} {environ['PATH_INFO']}"]
    with POOL.connection() as connection:
        for statement, parameters in statements:
            cursor = connection.execute(statement, parameters or None)
            if cursor.description:
                cursor.fetchall()
    start_response(status, headers)
    return [body]
