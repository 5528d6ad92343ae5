"""What GPUs did, as fragments of the pages of a workload and of a team: they load after the page."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from accounts.core.request_actor import actor
from usage.activity.queries import run_activity, team_activity
from usage.activity.shown import by_class
from workloads.core import queries


@login_required
@require_GET
def workload_activity(request: HttpRequest, tenant: str, name: str) -> HttpResponse:
    """Of the last run."""
    workload = queries.visible_workload(actor(request), tenant, name)
    run = queries.last_run(workload)
    found = run_activity(run, workload.gpu_class) if run is not None else None
    return render(request, "usage/activity/_run.html", {"activity": found, "tenant": tenant, "name": name})


@login_required
@require_GET
def team_activity_by_day(request: HttpRequest, tenant: str) -> HttpResponse:
    namespace, _team = queries.team(actor(request), tenant)
    return render(request, "usage/activity/_team.html", {"classes": by_class(team_activity(namespace))})
