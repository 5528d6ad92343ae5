"""Pages and REST API under WSGI (gunicorn). Holds no cluster credentials."""

import gc
import os
from collections.abc import Callable, Iterable
from typing import Any

from django.core.wsgi import get_wsgi_application
from django.db import close_old_connections
from django.urls import get_resolver

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
_django = get_wsgi_application()


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """Gives the connection to the database back before the response is sent: Django keeps it until the client has read
    the last byte, so a few slow clients would take all connections of a process. No response reads rows while it is
    sent.
    """
    response: Iterable[bytes] = _django(environ, start_response)
    close_old_connections()
    return response


# All pages' modules: otherwise the first visitor of each worker waits for them, and each worker has its own.
_ = get_resolver().url_patterns

# What is loaded now stays: looked through at every full collection it would hold up requests, and forked processes
# would stop sharing it.
gc.collect()
gc.freeze()
