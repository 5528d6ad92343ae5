"""Replaces characters that readers do not see in every page and fragment: portal/core/plain_text.py."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

from portal.core.plain_text import visible_html


class HiddenCharactersMiddleware:
    """Must stand inside of the middleware that sets Content-Length."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        if not response.streaming and response.get("Content-Type", "").startswith("text/html"):
            response.content = visible_html(response.content)
        return response
