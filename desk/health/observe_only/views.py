"""The page Observe only, for operators."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_POST

from accounts.core.request_actor import operator
from cluster.observe_only import actions
from cluster.reads import queries as read_queries
from desk.health.observe_only.queries import observe_only_of


@login_required
@require_GET
def observe_only(request: HttpRequest) -> HttpResponse:
    """For operators; 404 for all other users."""
    operator(request)
    return render(request, "desk/health/observe_only.html", {"page": observe_only_of(read_queries.current_cluster())})


@login_required
@require_POST
def observe_only_set(request: HttpRequest) -> HttpResponse:
    """For operators; 404 for all other users."""
    by = operator(request)
    wanted = request.POST.get("to") == "on"
    actions.set_observe_only(read_queries.current_cluster(), wanted=wanted, by=by)
    messages.success(
        request,
        "The portal writes nothing to the cluster from now on."
        if wanted
        else "The portal writes to the cluster again. What waited is due now.",
    )
    return redirect("observe-only")
