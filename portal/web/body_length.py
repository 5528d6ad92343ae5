"""Refuses a body without a length ("Transfer-Encoding: chunked") under WSGI.

Django reads as many bytes as Content-Length says. Such a body would be read as empty, and the request would be carried
out without what the client sent. The gateway and clients of the API send a length.
"""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

from portal.core.errors import Refusal
from portal.web.refusals import json_refusal

LENGTH_REQUIRED = Refusal(
    "length_required",
    "The body has no Content-Length header, so it was not read and nothing was done. Send the request with a length "
    "instead of in chunks.",
    status=411,
)


class BodyLengthMiddleware:
    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        meta = request.META
        # Under ASGI (doors) Django reads to the end of the body.
        if "wsgi.input" in meta and "HTTP_TRANSFER_ENCODING" in meta and not meta.get("CONTENT_LENGTH"):
            return json_refusal(LENGTH_REQUIRED)
        return self.get_response(request)
