"""Faults of the GPUs of a run: a part of its workload's page."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from accounts.core.request_actor import actor
from usage.faults.queries import faults_of_run
from usage.faults.shown import run_view
from workloads.core import queries as core_queries
from workloads.models import Run


def workload_context(run: Run | None) -> dict[str, Any]:
    """For the page of a workload; the URL configuration passes this function in."""
    return {"faults": run_view(faults_of_run(run))}


@login_required
@require_GET
def faults_fragment(request: HttpRequest, tenant: str, name: str) -> HttpResponse:
    """The browser fetches it again each minute."""
    found = core_queries.visible_workload(actor(request), tenant, name)
    context = {"state": found, **workload_context(core_queries.last_run(found))}
    return render(request, "usage/faults/_workload.html", context)
