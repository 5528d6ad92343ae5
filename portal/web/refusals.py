"""The only place that renders refusals: as a page, a fragment, an error beside a form field, or JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from django.conf import settings
from django.contrib import messages
from django.db import IntegrityError, OperationalError
from django.forms import BaseForm
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render, resolve_url
from django.urls import reverse
from django_htmx.http import HttpResponseClientRedirect

from portal.core.errors import DATABASE_AWAY, Refusal, Refused, to_refusal

if TYPE_CHECKING:
    from rest_framework.response import Response


SIGNED_OUT = Refusal(
    "not_signed_in",
    "Your session has ended. What you entered is still here: sign in in a new tab, come back and try again.",
    status=401,
)


@contextmanager
def refusal_in_form(form: BaseForm) -> Iterator[None]:
    """Shows a refusal of the input in `form` beside its field. "Not found" and "not allowed" stay error pages.

    The caller checks `form.errors` afterwards. The form must not have been rendered before.
    """
    try:
        yield
    except (Refused, IntegrityError) as error:
        refusal = to_refusal(error)
        if refusal is None or refusal.status not in (409, 422):
            raise
        form.add_error(refusal.field if refusal.field in form.fields else None, refusal.message)


class RefusalMiddleware:
    """Renders Refused for pages: a fragment for htmx, a page otherwise. REST is done by the handler below."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        sent_to = response.headers.get("Location", "").partition("?")[0]
        if (
            response.status_code == 302
            and getattr(request, "htmx", False)
            and sent_to == resolve_url(settings.LOGIN_URL)
        ):
            # htmx would follow it and put the sign-in page, or nothing of it, in the place of what somebody types.
            return page_refusal(request, SIGNED_OUT)
        return response

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        if not isinstance(exception, Refused | IntegrityError | OperationalError):
            return None
        refusal = to_refusal(exception)
        # A page reads the signed-in user from the database. Without it, only the plain page for status 500 works.
        if refusal is None or refusal is DATABASE_AWAY:
            return None
        return page_refusal(request, refusal)


def page_refusal(request: HttpRequest, refusal: Refusal) -> HttpResponse:
    fragment = bool(getattr(request, "htmx", False))
    if refusal.status == 401 and not fragment:
        from django.contrib.auth.views import redirect_to_login  # loads the user model, which imports this leaf

        return redirect_to_login(request.get_full_path())
    if refusal.code == "second_factor_needed":
        return _to_second_factor(request, refusal.message, fragment=fragment)
    if fragment:
        template = "components/status/_refusal.html"
    else:
        template = "404.html" if refusal.status == 404 else "portal/web/refusal.html"
    response = render(request, template, {"refusal": refusal}, status=refusal.status)
    if refusal.retry_after_s is not None:
        response["Retry-After"] = str(refusal.retry_after_s)
    return response


def _to_second_factor(request: HttpRequest, why: str, *, fragment: bool) -> HttpResponse:
    """The page that adds a second factor or asks for its code. It returns to a page, not to a form that was sent."""
    messages.info(request, why)
    back = "?" + urlencode({"next": request.get_full_path()}) if request.method == "GET" and not fragment else ""
    url = reverse("second-factor") + back
    return HttpResponseClientRedirect(url) if fragment else redirect(url)


def api_exception_handler(exception: Exception, context: dict[str, Any]) -> Response | None:
    """DRF's exceptions and ours in one body: {"code", "message", "field"}."""
    # Imported late: models import this leaf, and DRF's views load the authentication classes, which import models.
    from rest_framework.response import Response
    from rest_framework.views import set_rollback

    refusal = to_refusal(exception)
    if refusal is None:
        return None
    set_rollback()
    return Response(refusal.body(), status=refusal.status, headers=api_headers(refusal))


def json_refusal(refusal: Refusal) -> JsonResponse:
    """For API responses outside of DRF: unknown paths, failed CSRF checks (form_too_old), the doors process."""
    return JsonResponse(refusal.body(), status=refusal.status, headers=api_headers(refusal))


def early_refusal(request: HttpRequest, refusal: Refusal) -> HttpResponse:
    """For middleware that refuses a request before its user is known: JSON below /api/, otherwise the sentence."""
    if request.path.startswith("/api/"):
        return json_refusal(refusal)
    return HttpResponse(refusal.message, status=refusal.status, content_type="text/plain; charset=utf-8")


def api_headers(refusal: Refusal) -> dict[str, str]:
    headers = {}
    if refusal.retry_after_s is not None:
        headers["Retry-After"] = str(refusal.retry_after_s)
    if refusal.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return headers
