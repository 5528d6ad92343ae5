"""Records the SQL statements of one call and its answer, for a peer that does nothing else."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from tests.perf.support.pace import Asked

Statement = tuple[str, Any]


@dataclass(frozen=True)
class Recorded:
    """`call`: method and address without its query. `statements`: with their parameters, in order, including the begin
    and end of transactions.
    """

    call: str
    statements: list[Statement]
    status: str
    headers: list[tuple[str, str]]
    body: bytes


def recorded(asked: Asked) -> Recorded:
    """Runs in this process. The call is made twice: the first one fills caches."""
    from django.test import Client

    client = Client(headers=dict(asked.headers))
    for _ in range(2):
        with _statements() as statements:
            kind = asked.headers.get("Content-Type", "application/octet-stream")
            answer = client.generic(asked.method, asked.path, asked.body or b"", content_type=kind)
    assert answer.status_code == 200, answer.content
    status = f"{answer.status_code} {answer.reason_phrase}"
    call = f"{asked.method} {asked.path.partition('?')[0]}"
    return Recorded(call, statements, status, [(name, str(text)) for name, text in answer.items()], answer.content)


def keep(calls: Iterable[Recorded], path: Path) -> None:
    """Writes a file for `_bare_wsgi`, which does not import this module."""
    path.write_bytes(pickle.dumps({one.call: (one.statements, one.status, one.headers, one.body) for one in calls}))


@contextmanager
def _statements() -> Iterator[list[Statement]]:
    from django.db import connection

    found: list[Statement] = []
    is_open = False

    def run(execute: Any, statement: Any, parameters: Any, many: bool, context: Any) -> Any:
        nonlocal is_open
        assert not many
        if connection.in_atomic_block and not is_open:
            found.append(("BEGIN", None))
            is_open = True
        found.append((str(statement), [_plain(one) for one in parameters or ()]))
        return execute(statement, parameters, many, context)

    def committed() -> None:
        nonlocal is_open
        if is_open:
            found.append(("COMMIT", None))
        is_open = False
        commit()

    commit = connection.commit
    connection.commit = committed  # type: ignore[method-assign]
    try:
        with connection.execute_wrapper(run):
            yield found
    finally:
        connection.commit = commit  # type: ignore[method-assign]


def _plain(parameter: Any) -> Any:
    """Turns a model's choice into plain text, which the peer can read without the model."""
    return parameter.value if isinstance(parameter, Enum) else parameter
