"""Pages about one class and, for staff, about nodes."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from accounts.edge import actor
from desk.queries import classes


@login_required
@require_GET
def class_page(request: HttpRequest, slug: str) -> HttpResponse:
    """One class in full; `?part=live` is only what changes by the minute, for the page itself to fetch."""
    by = actor(request)
    one = classes.find(by, slug)
    if request.GET.get("part") == "live":
        return render(request, "desk/_class_live.html", {"live": classes.live(by, one)})
    return render(request, "desk/class.html", {"page": classes.class_page(by, one)})
