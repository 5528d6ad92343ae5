"""Light, dark or as the system has it: a cookie, set by a form, read when a page is rendered."""

from __future__ import annotations

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST

COOKIE = "theme"
THEMES = ("auto", "light", "dark")
YEAR_S = 365 * 24 * 3600


def chosen(request: HttpRequest) -> str:
    """The person's choice, whatever the cookie says: an unknown word is no choice."""
    theme = request.COOKIES.get(COOKIE, "")
    return theme if theme in THEMES else "auto"


@require_POST
def choose(request: HttpRequest) -> HttpResponse:
    target = request.POST.get("next", "/")
    if not url_has_allowed_host_and_scheme(
        target, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    ):
        target = "/"
    response = HttpResponseRedirect(target)
    theme = request.POST.get("theme", "")
    if theme in THEMES:
        response.set_cookie(
            COOKIE, theme, max_age=YEAR_S, samesite="Lax", secure=settings.SESSION_COOKIE_SECURE, httponly=True
        )
    return response
