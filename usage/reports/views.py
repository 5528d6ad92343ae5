"""The pages of the usage report, of a team for its members and of all teams for staff, and the same as CSV."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_GET

from accounts.core.actor import Actor
from accounts.core.request_actor import actor, staff
from portal.core.csv_text import CONTENT_TYPE
from portal.core.errors import get_or_refuse
from tenants.models import Tenant
from usage.reports.export import capacity_csv, report_csv
from usage.reports.queries import read_report
from usage.reports.types import UsageReport
from workloads.budgets.forms import BudgetForm
from workloads.budgets.policy import may_set_budget
from workloads.budgets.queries import budget_of, is_owner


@login_required
@require_GET
def team_usage(request: HttpRequest, tenant: str) -> HttpResponse:
    """With the budget, on the page of the current month only."""
    team = _visible(request, tenant)
    report = read_report(team, request.GET.get("month"))
    context = {"tenant": team, "report": report, "zone": _zone()}
    if not report.is_over:
        context |= _budget(actor(request), team)
    return render(request, "usage/reports/team.html", context)


@login_required
@require_GET
def team_usage_as_csv(request: HttpRequest, tenant: str) -> HttpResponse:
    team = _visible(request, tenant)
    report = read_report(team, request.GET.get("month"))
    return _file(f"usage-{team.slug}", report, report_csv(report))


@login_required
@require_GET
def all_usage(request: HttpRequest) -> HttpResponse:
    """For operators, administrators and auditors; 404 for all others, as for the CSV."""
    staff(request)
    report = read_report(None, request.GET.get("month"))
    return render(request, "usage/reports/all.html", {"report": report, "zone": _zone()})


@login_required
@require_GET
def all_usage_as_csv(request: HttpRequest) -> HttpResponse:
    staff(request)
    report = read_report(None, request.GET.get("month"))
    return _file("usage", report, report_csv(report))


@login_required
@require_GET
def capacity_as_csv(request: HttpRequest) -> HttpResponse:
    staff(request)
    report = read_report(None, request.GET.get("month"))
    return _file("capacity", report, capacity_csv(report))


def _budget(by: Actor, team: Tenant) -> dict[str, Any]:
    found = budget_of(team)
    is_shown = may_set_budget(by, amount=None) is None
    initial = {"amount": found.amount, "at_limit": found.at_limit} if found else None
    return {
        "budget": found,
        "budget_form": BudgetForm(initial=initial) if is_shown else None,
        "may_confirm": found is not None and found.may_confirm and is_owner(by, team),
    }


def _visible(request: HttpRequest, slug: str) -> Tenant:
    return get_or_refuse(Tenant.objects.visible_to(actor(request)), slug=slug)


def _zone() -> str:
    return timezone.get_default_timezone_name()


def _file(name: str, report: UsageReport, text: str) -> HttpResponse:
    named = {"Content-Disposition": f'attachment; filename="{name}-{report.month}.csv"'}
    return HttpResponse(text, content_type=CONTENT_TYPE, headers=named)
