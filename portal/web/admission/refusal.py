"""A refusal that says when to come back, rendered without the database, the session or the user."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string

from portal.core.errors import Refusal
from portal.web.refusals import json_refusal


def later(request: HttpRequest, refusal: Refusal) -> HttpResponse:
    """JSON for programs, the sentence for htmx (portal.js shows it above the form, which stays), otherwise a page."""
    if request.path.startswith("/api/"):
        return json_refusal(refusal)
    is_fragment = request.headers.get("HX-Request") == "true"
    template = "components/status/_refusal.html" if is_fragment else "portal/web/later.html"
    context = {"refusal": refusal, "is_form": request.method == "POST"}
    response = HttpResponse(render_to_string(template, context), status=refusal.status)
    response["Retry-After"] = str(refusal.retry_after_s)
    return response
