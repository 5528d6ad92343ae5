"""Suggested actions for the current user: fragments that the browser fetches whenever a state changes."""

from __future__ import annotations

from collections.abc import Iterable

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from accounts.core.request_actor import actor
from workloads.advice.queries import advice_by_workload
from workloads.advice.shown import advice_view
from workloads.core import queries, workload_sql
from workloads.models import Workload
from workloads.status import queries as status_queries
from workloads.status.workload_row import SHOWN_OF_A_CLASS, WorkloadRow, in_queue_order


@login_required
@require_GET
def workload_advice(request: HttpRequest, tenant: str, name: str) -> HttpResponse:
    by = actor(request)
    namespace, team = queries.team(by, tenant)
    [row] = status_queries.workload_rows([queries.visible_workload(by, tenant, name)])
    found = advice_by_workload(by, namespace, team, [row]).get(name)
    context = {"state": row.workload, "helps": advice_view(name, found, tenant) if found else None}
    return render(request, "workloads/advice/_advice.html", context)


@login_required
@require_GET
def team_advice(request: HttpRequest, tenant: str) -> HttpResponse:
    """For the queued runs that home shows, each at its place in the list."""
    by = actor(request)
    namespace, team = queries.team(by, tenant)
    alive = Workload.objects.filter(namespace=namespace, deleted_at=None, runs__ended_at=None, runs__isnull=False)
    rows = status_queries.workload_rows(workload_sql.with_related(alive.order_by("-id"))[:500])
    rows = _shown(row for row in rows if row.is_in_line)
    found = [advice_view(name, one, tenant) for name, one in advice_by_workload(by, namespace, team, rows).items()]
    return render(request, "workloads/advice/_team_advice.html", {"waiting": found})


def _shown(rows: Iterable[WorkloadRow]) -> list[WorkloadRow]:
    """The first in the queue of each class."""
    found: dict[str, list[WorkloadRow]] = {}
    for row in in_queue_order(rows):
        found.setdefault(row.gpu_class.slug, []).append(row)
    return [row for of_class in found.values() for row in of_class[:SHOWN_OF_A_CLASS]]
