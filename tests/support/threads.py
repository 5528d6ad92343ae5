"""Several threads at once, each with a database connection of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable

from django.db import connections


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
