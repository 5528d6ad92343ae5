"""The page of one class."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from accounts.core.request_actor import actor
from desk.classes import queries as class_queries
from desk.classes.live_status import class_live
from desk.classes.storage import storage_page


@login_required
@require_GET
def class_page(request: HttpRequest, slug: str) -> HttpResponse:
    """The page of one class; `?part=live` returns only the frequently changing part, which the page itself fetches."""
    by = actor(request)
    one = class_queries.visible_class(by, slug)
    if one.is_storage:
        return render(request, "desk/classes/storage.html", {"page": storage_page(by, one)})
    if request.GET.get("part") == "live":
        return render(request, "desk/classes/_class_live.html", {"live": class_live(by, one)})
    return render(request, "desk/classes/class.html", {"page": class_queries.class_page(by, one)})
