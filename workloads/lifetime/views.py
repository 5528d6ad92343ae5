"""The limits of a run on its workload's page, and the two buttons there. Parse, call one action, render."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_POST

from accounts.core.request_actor import actor
from workloads.core import queries
from workloads.lifetime.idle import actions as idle_actions
from workloads.lifetime.limits import run_limits
from workloads.lifetime.run_time import actions as run_time_actions
from workloads.status import queries as status_queries


@login_required
@require_GET
def limits_fragment(request: HttpRequest, tenant: str, name: str) -> HttpResponse:
    """The browser fetches it again when the state changes."""
    by = actor(request)
    _namespace, team = queries.team(by, tenant)
    found = queries.visible_workload(by, tenant, name)
    [row] = status_queries.workload_rows([found])
    context = {"state": row.workload, "limits": run_limits(by, team, row)}
    return render(request, "workloads/lifetime/_limits.html", context)


@login_required
@require_POST
def extend(request: HttpRequest, tenant: str, name: str) -> HttpResponse:
    run_time_actions.extend(tenant, name, hours=_hours(request), by=actor(request))
    return redirect("workload", tenant, name)


@login_required
@require_POST
def keep(request: HttpRequest, tenant: str, name: str) -> HttpResponse:
    reason = request.POST.get("reason", "")
    idle_actions.keep_notebook(tenant, name, hours=_hours(request), reason=reason, by=actor(request))
    return redirect("workload", tenant, name)


def _hours(request: HttpRequest) -> int:
    """Returns 0 for text that is not a number; the action refuses it and states the possible range."""
    text = request.POST.get("hours", "").strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) < 6 else 0
