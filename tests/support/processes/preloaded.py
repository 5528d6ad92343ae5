"""Starts watchers quickly: one process imports the portal once, and every watcher is a fork of it.

A new interpreter needs 1.3 s of processor time before it starts its work, in each of some sixty tests. A fork has its
own connections, threads, signals and end, as if started by `manage.py`. tests/e2e and tests/recovery start watchers by
`manage.py`.

python -m tests.support.processes.preloaded

reads requests from standard input, one line of JSON each, and answers each with a number.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from tests.support.waiting import wait_until

ROOT = Path(__file__).parents[3]
NOT_YET = -1000  # the exit status while the child still runs


def watch(*arguments: str, kubeconfig: str, log: Path) -> Child:
    """Runs `manage.py watch_cluster …` with that identity on this process's database; its output goes to the log."""
    parent = _parent()
    log.touch()
    return Child(parent, parent.ask(start=["watch_cluster", *arguments], kubeconfig=kubeconfig, log=str(log)))


class Parent:
    """The process that is forked. It and its children end when its standard input ends."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        argv = [sys.executable, "-m", "tests.support.processes.preloaded"]
        self._process = subprocess.Popen(
            argv, cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def ask(self, **request: Any) -> int:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())


class Child:
    """The part of `subprocess.Popen` that the tests need."""

    def __init__(self, parent: Parent, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._parent = parent

    def poll(self) -> int | None:
        if self.returncode is None:
            code = self._parent.ask(ended=self.pid)
            self.returncode = None if code == NOT_YET else code
        return self.returncode

    def wait(self, timeout: float) -> int:
        wait_until(lambda: self.poll() is not None, within_s=timeout, every_s=0.01, what=f"end of process {self.pid}")
        assert self.returncode is not None
        return self.returncode

    def send_signal(self, number: signal.Signals) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


@cache
def _parent() -> Parent:
    """Started at the first use."""
    from tests.plugin import process_environment

    return Parent({**process_environment("watcher"), "LOG_LEVEL": "INFO"})


def _serve() -> dict[str, Any]:
    """Returns only in children: the arguments of the command that the child has to run."""
    children: set[int] = set()
    for line in sys.stdin:
        request = json.loads(line)
        if "start" in request:
            answer = os.fork()
            if not answer:
                return dict(request)
            children.add(answer)
        else:
            answer = _ended(request["ended"])
            if answer != NOT_YET:
                children.discard(request["ended"])
        sys.stdout.write(f"{answer}\n")
        sys.stdout.flush()
    for pid in children:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    sys.exit()


def _ended(pid: int) -> int:
    ended, status = os.waitpid(pid, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if ended else NOT_YET


def _main() -> None:
    import django

    django.setup()
    from django.conf import settings
    from django.core.checks import run_checks
    from django.core.management import execute_from_command_line

    import cluster.management.commands.watch_cluster  # noqa: F401 - what every child would import

    run_checks()  # Every child runs the checks again; they import all URLs with their views, half of the start-up time.

    request = _serve()
    settings.PORTAL_KUBECONFIG = request["kubeconfig"]
    # The parent's standard streams carry requests and answers.
    with open(request["log"], "ab") as log, open(os.devnull, "rb") as nothing:
        for number, stream in enumerate((nothing, log, log)):
            os.dup2(stream.fileno(), number)
    execute_from_command_line(["manage.py", *request["start"]])


if __name__ == "__main__":
    _main()
