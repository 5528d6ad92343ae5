"""The portal's own error pages, registered in portal/urls.py as handler400 … handler500.

A browser gets a page, htmx gets the sentence as a fragment, an API client gets the standard error body.
"""

from __future__ import annotations

import sys

import structlog
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string

from portal.core.errors import DATABASE_AWAY, NOT_ALLOWED, NOT_FOUND, Refusal
from portal.web.refusals import json_refusal

BAD_REQUEST = Refusal("bad_request", "The request is malformed.", status=400)
INTERNAL_ERROR = Refusal("internal_error", "Internal error in the portal; it was logged. Try again.", status=500)


def bad_request(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    return error_response(request, "400.html", BAD_REQUEST)


def permission_denied(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    return error_response(request, "403.html", NOT_ALLOWED)


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    refusal = Refusal("form_too_old", "This form has expired. Reload the page and send it again.", status=403)
    return error_response(request, "403.html", refusal, {"reason": reason})


def page_not_found(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    return error_response(request, "404.html", NOT_FOUND)


def server_error(request: HttpRequest) -> HttpResponse:
    """Rendered without the request's context: the page's navigation may need the part that failed."""
    lost_database = isinstance(sys.exc_info()[1], OperationalError | InterfaceError)
    refusal = DATABASE_AWAY if lost_database else INTERNAL_ERROR
    if wants_json(request):
        response: HttpResponse = json_refusal(refusal)
    elif lost_database:
        response = HttpResponse(render_to_string("503.html", {"what": "its database"}), status=503)
    else:
        request_id = structlog.contextvars.get_contextvars().get("request_id", "")
        response = HttpResponse(render_to_string("500.html", {"request_id": request_id}), status=500)
    if refusal.retry_after_s:
        response["Retry-After"] = str(refusal.retry_after_s)
    return response


def wants_json(request: HttpRequest) -> bool:
    return request.path.startswith("/api/")


def error_response(
    request: HttpRequest, page: str, refusal: Refusal, context: dict[str, str] | None = None
) -> HttpResponse:
    if wants_json(request):
        return json_refusal(refusal)
    if getattr(request, "htmx", False):
        return render(request, "components/status/_refusal.html", {"refusal": refusal}, status=refusal.status)
    return render(request, page, context, status=refusal.status)
