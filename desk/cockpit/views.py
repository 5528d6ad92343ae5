"""The operators' start page. 404 for all other users."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_GET

from accounts.core.request_actor import operator
from cluster.reads import queries as read_queries
from desk.cockpit import queries, shown
from usage.idle.shown import holders_view

REQUESTS_SHOWN = 5


@login_required
@require_GET
def cockpit(request: HttpRequest) -> HttpResponse:
    by = operator(request)
    found = queries.cockpit(read_queries.current_cluster(), is_staff=bool(by.user and by.user.is_staff))
    context = {
        "cockpit": found,
        "health": found.snapshot.health,
        "modes": [shown.shown_mode(one) for one in found.modes],
        "objects": shown.bounded(len(found.snapshot.health.objects)),
        "troubles": shown.troubles(found),
        "idle": holders_view(found.idle, timezone.now()),
        "requests": found.requests[:REQUESTS_SHOWN],
        "more_requests": max(0, len(found.requests) - REQUESTS_SHOWN),
        "team_requests": found.team_requests[:REQUESTS_SHOWN],
        "more_team_requests": max(0, len(found.team_requests) - REQUESTS_SHOWN),
    }
    return render(request, "desk/cockpit/cockpit.html", context)
