"""The theme (light, dark or the system's), in a cookie that a form sets and every rendered page reads."""

from __future__ import annotations

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.views.decorators.http import require_POST

from portal.web.safe_redirect import safe_redirect_target

THEMES = ("auto", "light", "dark")
YEAR_S = 365 * 24 * 3600


def chosen_theme(request: HttpRequest) -> str:
    """The user's choice from the cookie. An unknown value counts as no choice."""
    theme = request.COOKIES.get(settings.THEME_COOKIE_NAME, "")
    return theme if theme in THEMES else "auto"


@require_POST
def theme_set(request: HttpRequest) -> HttpResponse:
    response = HttpResponseRedirect(safe_redirect_target(request.POST.get("next"), otherwise="/"))
    theme = request.POST.get("theme", "")
    if theme in THEMES:
        response.set_cookie(
            settings.THEME_COOKIE_NAME,
            theme,
            max_age=YEAR_S,
            samesite="Lax",
            secure=settings.SESSION_COOKIE_SECURE,
            httponly=True,
        )
    return response
