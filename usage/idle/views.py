"""Idle runs: the part of a workload's page with its button, and the operators' list."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_GET, require_POST

from accounts.core.actor import Actor
from accounts.core.request_actor import actor, operator, staff
from tenants.models import Tenant
from usage.idle import actions, queries, shown
from workloads.core import policy as core_policy
from workloads.core import queries as core_queries
from workloads.models import Run, Workload


def workload_context(by: Actor, team: core_policy.TeamFacts, workload: Workload, run: Run | None) -> dict[str, Any]:
    """For the page of a workload; the URL configuration passes this function in."""
    found = queries.idle_facts(by, team, workload, run)
    return {"idle": shown.facts_view(found, timezone.now()) if found else None}


def team_context(tenant: Tenant) -> dict[str, Any]:
    """The same for the page of a team."""
    found = queries.idle_holders(tenant, at_most=queries.TEAM_SHOWN)
    return {"idle": shown.holders_view(found, timezone.now())}


@login_required
@require_GET
def idle_fragment(request: HttpRequest, tenant: str, name: str) -> HttpResponse:
    """The browser fetches it again each minute."""
    by = actor(request)
    _namespace, team = core_queries.team(by, tenant)
    found = core_queries.visible_workload(by, tenant, name)
    context = {"state": found, **workload_context(by, team, found, core_queries.last_run(found))}
    return render(request, "usage/idle/_workload.html", context)


@login_required
@require_POST
def keep(request: HttpRequest, tenant: str, name: str) -> HttpResponse:
    hours = request.POST.get("hours", "").strip()
    # Text that is no number is refused by the action, which states the range.
    number = int(hours) if hours.isascii() and hours.isdigit() and len(hours) < 6 else 0
    actions.keep_idle(tenant, name, hours=number, reason=request.POST.get("reason", ""), by=actor(request))
    return redirect("workload", tenant, name)


@login_required
@require_GET
def idle_holders(request: HttpRequest) -> HttpResponse:
    """For operators, administrators and auditors; 404 for all others."""
    by = staff(request)
    week, more_persons = queries.wasted_week()
    context = {
        "idle": shown.holders_view(queries.idle_holders(), timezone.now()),
        "week": [shown.week_view(one) for one in week],
        "more_persons": more_persons,
        "may_operate": by.operates,
    }
    return render(request, "usage/idle/holders.html", context)


@login_required
@require_POST
def stop(request: HttpRequest, tenant: str, name: str) -> HttpResponse:
    by = operator(request)
    actions.stop_idle(tenant, name, reason=request.POST.get("reason", ""), by=by)
    messages.success(request, f"{name} of {tenant} stops. Its users are notified of the reason.")
    return redirect("idle-holders")
