"""Pages about one class and, for staff, about nodes."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from accounts.edge import actor, operator
from catalog import queries as catalog
from desk.queries import classes, nodes
from desk.queries.class_live import live
from desk.queries.storage import storage_page


@login_required
@require_GET
def class_page(request: HttpRequest, slug: str) -> HttpResponse:
    """One class in full; `?part=live` is only what changes by the minute, for the page itself to fetch."""
    by = actor(request)
    one = classes.find(by, slug)
    if one.is_storage:
        return render(request, "desk/storage.html", {"page": storage_page(by, one)})
    if request.GET.get("part") == "live":
        return render(request, "desk/_class_live.html", {"live": live(by, one)})
    return render(request, "desk/class.html", {"page": classes.class_page(by, one)})


@login_required
@require_GET
def node_list(request: HttpRequest) -> HttpResponse:
    """For staff; for everybody else it is not there. So is a node."""
    operator(request)
    q, state = request.GET.get("q", "").strip()[:100], request.GET.get("state", "")
    found = nodes.node_list(catalog.cluster(), q=q, state=state, cursor=request.GET.get("cursor"))
    context = {"found": found, "next_cursor": found.next_cursor, "q": q, "state": state}
    return render(request, "desk/nodes.html", context)


@login_required
@require_GET
def node_page(request: HttpRequest, name: str) -> HttpResponse:
    operator(request)
    return render(request, "desk/node.html", {"page": nodes.node_page(catalog.cluster(), name)})
