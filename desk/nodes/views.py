"""Pages about nodes, for staff."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from accounts.core.request_actor import operator
from cluster.reads import queries as read_queries
from desk.nodes import queries as node_queries
from usage.faults.shown import node_view, reading_sentence


@login_required
@require_GET
def node_list(request: HttpRequest) -> HttpResponse:
    """For staff; 404 for all other users, like the page of a node."""
    operator(request)
    q, state = request.GET.get("q", "").strip()[:100], request.GET.get("state", "")
    found = node_queries.node_list(read_queries.current_cluster(), q=q, state=state, cursor=request.GET.get("cursor"))
    context = {
        "found": found,
        "next_cursor": found.next_cursor,
        "q": q,
        "state": state,
        "reading": reading_sentence(found.reading),
    }
    return render(request, "desk/nodes/nodes.html", context)


@login_required
@require_GET
def node_page(request: HttpRequest, name: str) -> HttpResponse:
    operator(request)
    page = node_queries.node_page(read_queries.current_cluster(), name)
    context = {
        "page": page,
        "faults": [node_view(one) for one in page.faults],
        "reading": reading_sentence(page.reading),
    }
    return render(request, "desk/nodes/node.html", context)
