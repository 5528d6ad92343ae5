"""Maintenance of the nodes of a run: the part of a workload's page with its buttons."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_POST

from accounts.core.actor import Actor
from accounts.core.request_actor import actor
from desk.maintenance.choices.queries import drain_choices
from operations.maintenance.choices.actions import choose_at_drain
from workloads.core import policy as core_policy
from workloads.core import queries as core_queries
from workloads.models import Run, Workload


def workload_context(by: Actor, team: core_policy.TeamFacts, workload: Workload, run: Run | None) -> dict[str, Any]:
    """For the page of a workload; the URL configuration passes this function in."""
    return {"maintenances": drain_choices(by, team, workload, run)}


@login_required
@require_GET
def maintenance_fragment(request: HttpRequest, tenant: str, name: str) -> HttpResponse:
    """The browser fetches it again each minute, and when the state changes."""
    by = actor(request)
    _namespace, team = core_queries.team(by, tenant)
    found = core_queries.visible_workload(by, tenant, name)
    context = {"state": found, **workload_context(by, team, found, core_queries.last_run(found))}
    return render(request, "desk/maintenance/choices/_workload.html", context)


@login_required
@require_POST
def choose(request: HttpRequest, tenant: str, name: str, pk: int) -> HttpResponse:
    choose_at_drain(tenant, name, pk, request.POST.get("at_drain", ""), by=actor(request))
    return redirect("workload", tenant, name)
