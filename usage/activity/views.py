"""What GPUs did, as fragments of the pages of a workload and of a team: they load after the page."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from accounts.core.request_actor import actor
from usage.activity import queries as activity_queries
from usage.activity.shown import by_class
from workloads.core import queries


@login_required
@require_GET
def workload_activity(request: HttpRequest, tenant: str, name: str) -> HttpResponse:
    """Of the last run."""
    by = actor(request)
    found = activity_queries.workload_activity(by, queries.visible_workload(by, tenant, name))
    return render(request, "usage/activity/_run.html", {"activity": found, "tenant": tenant, "name": name})


@login_required
@require_GET
def team_activity_by_day(request: HttpRequest, tenant: str) -> HttpResponse:
    namespace, _team = queries.team(actor(request), tenant)
    return render(
        request, "usage/activity/_team.html", {"classes": by_class(activity_queries.team_activity(namespace))}
    )
