"""The administration's door: one way to sign in for everybody, the one that slows guessers down."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.auth.views import redirect_to_login
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from portal.way_back import way_back


def sign_in(request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
    """Instead of Django's own form. For people who are signed in and no staff, there is nothing here."""
    if admin.site.has_permission(request):
        return redirect("admin:index")
    if request.user.is_authenticated:
        raise Http404
    return redirect_to_login(way_back(request.GET.get("next"), otherwise=reverse("admin:index")))
