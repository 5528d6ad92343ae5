"""Reads the whole body of a request before anything else does, under WSGI (web).

A thread of web that waits for a body serves nobody else. The gateway sends a request on when it has all of
its body (deploy/Caddyfile), so a body arrives at once; for one that does not, web has this guard of its own.

A body without a length ("Transfer-Encoding: chunked") and one that ends early are refused: Django would carry out the
request with an empty body, or with the part that arrived. After a refusal the connection is closed, since the rest of
the body would be taken for the next request.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator

from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, HttpResponse, UnreadablePostError

from portal.core.errors import TOO_LARGE, Refusal
from portal.web.refusals import early_refusal

LENGTH_REQUIRED = Refusal(
    "length_required",
    "The body has no Content-Length header, so it was not read and nothing was done. Send the request with a length "
    "instead of in chunks.",
    status=411,
)
TOO_SLOW = Refusal(
    "body_too_slow",
    "The body of the request did not arrive in time, so nothing was done. Send it again.",
    status=408,
)
INCOMPLETE = Refusal("bad_request", "The body of the request ended early, so nothing was done.", status=400)

# Two of a process's threads may wait this long. While they do, the others give up after a moment.
WAIT_S = 2.0
MOMENT_S = 0.5
_patience = threading.BoundedSemaphore(2)


class RequestBodyMiddleware:
    """Must stand before all middleware that may refuse a request."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        # Under ASGI (doors) Django reads to the end of the body.
        if "wsgi.input" in request.META and (refusal := _receive(request)):
            # Set in gunicorn.conf.py.
            getattr(request.META["wsgi.input"], "close_connection", lambda: None)()
            return early_refusal(request, refusal)
        return self.get_response(request)


def _receive(request: HttpRequest) -> Refusal | None:
    length = int(request.META.get("CONTENT_LENGTH") or 0)
    if not length:
        return LENGTH_REQUIRED if "HTTP_TRANSFER_ENCODING" in request.META else None
    try:
        with _time_limit(request.META.get("gunicorn.socket")) as is_over:
            body = request.body  # Django keeps it; views and parsers read this copy
    except RequestDataTooBig:
        return TOO_LARGE
    except UnreadablePostError:
        return INCOMPLETE
    if is_over.is_set():
        return TOO_SLOW
    return INCOMPLETE if len(body) < length else None


@contextlib.contextmanager
def _time_limit(connection: socket.socket | None) -> Iterator[threading.Event]:
    """Ends reading from the connection when time is over. A time-out of the socket would begin again at each byte."""
    is_over = threading.Event()
    if connection is None:  # another server than gunicorn
        yield is_over
        return

    def end() -> None:
        is_over.set()
        with contextlib.suppress(OSError):  # the client has gone
            connection.shutdown(socket.SHUT_RD)

    is_patient = _patience.acquire(blocking=False)
    timer = threading.Timer(WAIT_S if is_patient else MOMENT_S, end)
    timer.daemon = True
    timer.start()
    try:
        yield is_over
    finally:
        timer.cancel()
        if is_patient:
            _patience.release()
