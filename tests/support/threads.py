"""Several threads at once, each with a database connection of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable

from django.db import connections

from portal.core.errors import Refused


def in_threads(number: int, run: Callable[[], None], *others: Callable[[], None]) -> None:
    """Each in a thread of its own with a connection of its own; the first exception is raised here."""
    errors: list[BaseException] = []

    def closing(function: Callable[[], None]) -> None:
        try:
            function()
        except BaseException as error:
            errors.append(error)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=closing, args=(function,)) for function in [run] * number + list(others)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive()
    if errors:
        raise errors[0]


def at_once(*verbs: Callable[[], object]) -> list[str]:
    """Run the verbs in threads that start together; "ok" or the code of the refusal, in the verbs' order."""
    results = [""] * len(verbs)
    start = threading.Barrier(len(verbs))

    def run(index: int, verb: Callable[[], object]) -> None:
        try:
            start.wait(timeout=10)
            verb()
            results[index] = "ok"
        except Refused as refused:
            results[index] = refused.code
        except Exception as error:
            results[index] = repr(error)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=run, args=pair) for pair in enumerate(verbs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    return results
