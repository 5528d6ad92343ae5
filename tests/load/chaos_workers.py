"""A zygote that forks workers which die at random before and after they touch the cluster; started by `chaos.py`.

Django is imported once, so that a death costs milliseconds instead of an interpreter start.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

# Short leases, so that the row of a dead worker is claimed again within the test's time.
SHORT = {"LEASE_S": 6, "RECONCILE_BUDGET_S": 2, "KUBE_TIMEOUT_S": 1.5}
DIED = 9
OVERLAP = 17
# A worker that is idle for so long was forgotten.
IDLE_AT_MOST_S = 3600


def main(argv: Sequence[str]) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, required=True)
    parser.add_argument("--death-rate", type=float, required=True)
    parser.add_argument("--kubeconfig", required=True)
    parser.add_argument("--seed", type=int, required=True)
    arguments = parser.parse_args(argv)

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
    import django

    django.setup()
    from django.conf import settings

    for name, value in SHORT.items():
        setattr(settings, name, value)

    children: set[int] = set()
    is_over = False

    def end(*_: object) -> None:
        nonlocal is_over
        is_over = True
        # A waiter for the child's death waits no longer.
        for pid in children:
            with suppress(ProcessLookupError):  # it died this moment
                os.kill(pid, signal.SIGKILL)

    signal.signal(signal.SIGTERM, end)
    born = 0
    parent = os.getpid()
    while not is_over:
        while len(children) < arguments.workers:
            born += 1
            children.add(_fork(arguments, seed=arguments.seed * 100_000 + born, parent=parent))
        pid, status = os.waitpid(-1, 0)
        children.discard(pid)
        if is_over:
            break
        code = os.waitstatus_to_exitcode(status)
        sys.stdout.write({DIED: "died", OVERLAP: "overlap"}.get(code, f"crashed {code}") + "\n")
        sys.stdout.flush()
    for pid in children:
        os.kill(pid, signal.SIGKILL)
    for pid in children:
        os.waitpid(pid, 0)


def _fork(arguments: argparse.Namespace, *, seed: int, parent: int) -> int:
    pid = os.fork()
    if pid:
        return pid
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        _live(arguments, random.Random(seed), parent)
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)
    os._exit(0)


def _live(arguments: argparse.Namespace, dice: random.Random, parent: int) -> None:
    """Drain the namespaces' table until death, or until the zygote is gone."""
    from cluster.client.kube import Kube
    from portal.core import due
    from tenants.models import Namespace
    from tenants.provisioning import steps
    from tests.support.waiting import wait_until

    class MortalKube(Kube):
        def _send(self, method: str, *args: Any, **kwargs: Any) -> Any:
            if method == "GET":
                return super()._send(method, *args, **kwargs)
            if dice.random() < arguments.death_rate:
                os._exit(DIED)
            answer = super()._send(method, *args, **kwargs)
            if dice.random() < arguments.death_rate:
                os._exit(DIED)
            return answer

    kube = MortalKube(arguments.kubeconfig)

    def alone(row: Namespace, deadline: due.Deadline) -> due.Outcome:
        with _only_one(row.pk):
            return steps.work_on_namespace(row, deadline, kube=kube)

    # No hint arrives here: the worker polls the rows.
    while os.getppid() == parent:
        wait_until(lambda: due.drain(Namespace, alone, for_s=1) or os.getppid() != parent, within_s=IDLE_AT_MOST_S)


class _only_one:
    """A session advisory lock for one row: it ends with its worker and shows when two workers have the same row."""

    def __init__(self, pk: int) -> None:
        self.pk = pk

    def __enter__(self) -> None:
        from django.db import connection

        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_try_advisory_lock(77, %s)", [self.pk])
            if not cursor.fetchone()[0]:
                os._exit(OVERLAP)

    def __exit__(self, *_: object) -> None:
        from django.db import connection

        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_unlock(77, %s)", [self.pk])


if __name__ == "__main__":
    main(sys.argv[1:])
