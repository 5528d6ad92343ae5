"""The catalog's three pages: all classes, help to choose, side by side."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET
from django.views.decorators.vary import vary_on_headers

from accounts.core.request_actor import actor
from desk.catalog import shown as catalog_shown


@login_required
@require_GET
@vary_on_headers("HX-Request")
def catalog_page(request: HttpRequest) -> HttpResponse:
    context = catalog_shown.catalog(request.GET, by=actor(request))
    return render(
        request,
        "desk/catalog/_catalog_fragment.html" if _is_fragment(request) else "desk/catalog/catalog.html",
        context,
    )


@login_required
@require_GET
@vary_on_headers("HX-Request")
def choose(request: HttpRequest) -> HttpResponse:
    """Help me choose: all questions, and one recommendation with all its reasons."""
    context = catalog_shown.choose(request.GET, by=actor(request))
    return render(
        request,
        "desk/catalog/_recommendation_details.html" if _is_fragment(request) else "desk/catalog/choose.html",
        context,
    )


@login_required
@require_GET
def compare(request: HttpRequest) -> HttpResponse:
    """Classes side by side; those named by `class`, or all."""
    return render(
        request, "desk/catalog/compare.html", catalog_shown.compare(request.GET.getlist("class"), by=actor(request))
    )


def _is_fragment(request: HttpRequest) -> bool:
    """True if htmx requests a part. It requests the whole page to restore history that is no longer cached."""
    return "HX-Request" in request.headers and "HX-History-Restore-Request" not in request.headers
