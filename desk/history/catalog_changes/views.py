"""The page of catalog changes."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from accounts.core.request_actor import actor
from accounts.rest.paging import page_of
from desk.history.catalog_changes import queries as catalog_change_queries


@login_required
@require_GET
def catalog_changes(request: HttpRequest) -> HttpResponse:
    found, known = catalog_change_queries.events(actor(request))
    page = page_of(found, cursor=request.GET.get("cursor"))
    context = {"changes": catalog_change_queries.catalog_changes(page.items, known), "next_cursor": page.next_cursor}
    return render(request, "desk/history/catalog_changes/changes.html", context)
