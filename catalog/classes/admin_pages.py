"""Shared code of the portal's own pages in the admin."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib.admin import AdminSite
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse

from accounts.core.request_actor import actor
from catalog.classes import policy


def admin_page(site: AdminSite, view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """A page of the admin for users who may edit the catalog; the view also gets the context of every admin page."""

    def checked(request: HttpRequest, **kwargs: Any) -> HttpResponse:
        if policy.may_edit(actor(request)) is not None:
            raise PermissionDenied
        return view(request, site.each_context(request), **kwargs)

    wrapped: Callable[..., HttpResponse] = site.admin_view(checked)
    return wrapped


def redirect_to_class(pk: int) -> HttpResponseRedirect:
    return HttpResponseRedirect(reverse("admin:catalog_gpuclass_change", args=[pk]))
