"""One id for all results of a request: log lines, events and the X-Request-ID header of the response."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable

import structlog
from django.http import HttpRequest, HttpResponse

VALID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{7,63}")
HEADER = "X-Request-ID"


def choose_request_id(offered: str | None) -> str:
    """The caller's id if it is safe in a log line and long enough, otherwise a new one."""
    return offered if offered and VALID.fullmatch(offered) else uuid.uuid4().hex


class RequestIdMiddleware:
    """Must be the first middleware: django-structlog's middleware reads the id from the header that this one sets."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        request_id = choose_request_id(request.META.get("HTTP_X_REQUEST_ID"))
        request.META["HTTP_X_REQUEST_ID"] = request_id
        request.request_id = request_id  # type: ignore[attr-defined]
        structlog.contextvars.clear_contextvars()
        response = self.get_response(request)
        response[HEADER] = request_id
        return response
