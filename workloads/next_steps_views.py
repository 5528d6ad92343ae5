"""What helps, for the person who looks: fragments that their browser fetches whenever a state changes."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from accounts.edge import actor
from workloads import queries, shown
from workloads.models import Workload
from workloads.next_steps_shown import helps
from workloads.queries.helping import advices


@login_required
@require_GET
def of_workload(request: HttpRequest, tenant: str, name: str) -> HttpResponse:
    by = actor(request)
    namespace, team = queries.team(by, tenant)
    [row] = queries.rows([queries.named(by, tenant, name)])
    found = advices(by, namespace, team, [row]).get(name)
    context = {"state": shown.workload_state(row), "helps": helps(name, found, tenant) if found else None}
    return render(request, "workloads/_next_steps.html", context)


@login_required
@require_GET
def of_team(request: HttpRequest, tenant: str) -> HttpResponse:
    """Of all that waits, each for its place in the list."""
    by = actor(request)
    namespace, team = queries.team(by, tenant)
    alive = Workload.objects.filter(namespace=namespace, deleted_at=None, runs__ended_at=None, runs__isnull=False)
    rows = queries.rows(queries.with_names(alive.order_by("-id"))[:500])
    rows = [row for row in rows if row.is_in_line]
    found = [helps(name, one, tenant) for name, one in advices(by, namespace, team, rows).items()]
    return render(request, "workloads/_next_steps_waiting.html", {"waiting": found})
