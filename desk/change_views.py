"""The page of catalog changes."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from accounts.edge import actor
from accounts.paging import page_of
from desk.queries import changes

PAGE_SIZE = 50


@login_required
@require_GET
def catalog_changes(request: HttpRequest) -> HttpResponse:
    found, known = changes.events(actor(request))
    page = page_of(found, limit=PAGE_SIZE, cursor=request.GET.get("cursor"))
    context = {"changes": changes.shown(page.items, known), "next_cursor": page.next_cursor}
    return render(request, "desk/changes.html", context)
