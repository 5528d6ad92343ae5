"""A zygote that forks processes of the portal, which record their writes and can be killed at one of them.

Each line on its standard input is a task as JSON; the answer is the child's exit status. A write is a commit in
PostgreSQL, a request to the API server that changes something, or a mail. A child dies by a real SIGKILL: before the
write, or after it and before anything that follows, hints included. Publishing in Redis is a hint and no write.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import threading
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

CHANGES = re.compile(r"\s*(?:WITH\b.*?\b)?(INSERT\s+INTO|UPDATE|DELETE\s+FROM|TRUNCATE)\s+\"?(\w+)", re.DOTALL)
FAILED = 3


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
    import django

    django.setup()
    import portal.celery
    from tests.faults.crashes import registry  # noqa: F401 - what every child would import
    from tests.support.database_roles import rights_of_processes

    portal.celery.app.loader.import_default_modules()
    with rights_of_processes():
        for line in sys.stdin:
            child = os.fork()
            if child == 0:
                _live(json.loads(line))
            _pid, status = os.waitpid(child, 0)
            sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
            sys.stdout.flush()


def _live(task: dict[str, Any]) -> None:
    try:
        with open(os.devnull, "rb") as nothing, open(task["log"], "ab") as log:
            for number, stream in enumerate((nothing, log, log)):
                os.dup2(stream.fileno(), number)
        _do(task)
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(FAILED)
    os._exit(0)


def _do(task: dict[str, Any]) -> None:
    from django.conf import settings
    from django.db import connection

    from tests.faults.crashes import registry
    from tests.faults.crashes.types import Place

    place = Place(**task["place"])
    settings.PORTAL_KUBECONFIG = place.kubeconfig
    settings.ALLOWED_HOSTS = ["testserver"]
    for name, value in task["settings"].items():
        setattr(settings, name, value)
    if port := task["settings"].get("DATABASE_PORT"):
        connection.settings_dict["PORT"] = port
    recorder = Recorder(task)
    recorder.install()
    if task["part"] == "call":
        registry.OPERATIONS[task["operation"]].call(place)
    else:
        work()


def work(rounds: int = 6) -> None:
    """As workers do: the task of each table until no row is due."""
    from celery import current_app

    from portal.core import due

    for _round in range(rounds):
        tables = due.sweep()
        for table in tables:
            current_app.tasks[f"{table}.work"].run()
        if not tables:
            return


class Recorder:
    """`strike`: the write at which something fails, and what: "kill before", "kill after", or a fault of this write."""

    def __init__(self, task: dict[str, Any]) -> None:
        self.part: str = task["part"]
        self.file = Path(task["record"])
        self.strike: list[Any] = task["strike"] or [None, ""]
        self.seen: Counter[str] = Counter()
        self.lock = threading.Lock()
        self.tables: list[str] = []
        if self.file.exists():
            for line in self.file.read_text().splitlines():
                part, label, _nth = json.loads(line)
                if part == self.part:
                    self.seen[label] += 1

    def around(self, label: str, write: Callable[[], Any], connection: Any = None) -> Any:
        with self.lock:
            self.seen[label] += 1
            point = [self.part, label, self.seen[label]]
            with self.file.open("a") as record:
                record.write(json.dumps(point) + "\n")
        how = self.strike[1] if point == self.strike[0] else ""
        if how:
            self.file.with_name("struck").touch()
        _fail(how, "before", connection)
        answer = write()
        _fail(how, "after", connection)
        return answer

    def install(self) -> None:
        from django.core.mail import EmailMessage
        from django.db.backends.base.base import BaseDatabaseWrapper
        from django.db.backends.signals import connection_created

        from cluster.client.kube import Kube

        commit, send, mail = BaseDatabaseWrapper.commit, Kube._send, EmailMessage.send

        def committed(connection: Any) -> None:
            tables, self.tables = self.tables, []
            if not tables:
                commit(connection)
                return
            self.around(f"SQL commit of {', '.join(dict.fromkeys(tables))}", lambda: commit(connection), connection)

        def run(execute: Any, statement: Any, parameters: Any, many: bool, context: Any) -> Any:
            change = CHANGES.match(str(statement))
            if change is None:
                return execute(statement, parameters, many, context)
            what = f"{change[1].split()[0].lower()} {change[2]}"
            if context["connection"].in_atomic_block:
                self.tables.append(what)
                return execute(statement, parameters, many, context)
            return self.around(
                f"SQL {what}", lambda: execute(statement, parameters, many, context), context["connection"]
            )

        def sent(kube: Any, method: str, path: str, *args: Any, **more: Any) -> Any:
            if method == "GET" or more.get("dry_run"):
                return send(kube, method, path, *args, **more)
            return self.around(request_label(method, path, more), lambda: send(kube, method, path, *args, **more))

        def mailed(message: Any, *args: Any, **more: Any) -> Any:
            def note() -> int:
                with Path(self.file.parent, "mails").open("a") as mails:
                    mails.write(json.dumps([message.extra_headers["Message-ID"], message.to, message.subject]) + "\n")
                return int(mail(message, *args, **more))

            return self.around("mail", note)

        BaseDatabaseWrapper.commit = committed  # type: ignore[method-assign,assignment]
        connection_created.connect(lambda connection, **_: connection.execute_wrappers.append(run), weak=False)
        Kube._send = sent  # type: ignore[method-assign,assignment]
        EmailMessage.send = mailed  # type: ignore[method-assign,assignment]


def _fail(how: str, moment: str, connection: Any) -> None:
    what, _, when = how.partition(" ")
    if when != moment:
        return
    if what == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if what == "mail":
        raise OSError("the mail server is away")
    from django.db import OperationalError

    if what == "cut":
        import psycopg

        parameters = {**connection.get_connection_params(), "autocommit": True}
        for name in ("cursor_factory", "context", "prepare_threshold"):
            parameters.pop(name, None)
        with psycopg.connect(**parameters) as other:
            other.execute("SELECT pg_terminate_backend(%s)", [connection.connection.info.backend_pid])
    if what == "timeout" or moment == "after":
        raise OperationalError("the statement took too long, or its answer was lost")


def request_label(method: str, path: str, more: dict[str, Any]) -> str:
    from devcluster.faults.rules import call_of

    call = call_of(method, path, more.get("content_type", ""))
    return f"API {call.verb} {call.resource}"


if __name__ == "__main__":
    main()
