"""The page on which an approver names a delegate."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST

from accounts.core.request_actor import actor
from portal.web.refusals import refusal_in_form
from tenants.approvers import queries
from tenants.approvers.delegation import actions as delegation_actions
from tenants.approvers.delegation import policy as delegation_policy
from tenants.approvers.delegation.forms import DelegationForm
from tenants.approvers.delegation.queries import delegation_rows
from tenants.core.forms import end_of_day, start_of_day

DAYS_DEFAULT = 14


@login_required
@require_http_methods(["GET", "POST"])
def delegation_list(request: HttpRequest) -> HttpResponse:
    by = actor(request)
    rights = queries.rights_of(by)
    today = timezone.localdate()
    initial = {"starts_at": today, "ends_at": today + timedelta(days=DAYS_DEFAULT)}
    form = DelegationForm(request.POST or None, initial=initial)
    if form.is_valid():
        typed = form.cleaned_data
        with refusal_in_form(form):
            starts, ends = start_of_day(typed["starts_at"]), end_of_day(typed["ends_at"])
            row = delegation_actions.name_delegate(email=typed["email"], starts=starts, ends=ends, by=by)
            messages.success(request, f"{row.deputy.name} is your delegate in this period and is notified by email.")
            return redirect("delegations")
    context: dict[str, Any] = {
        "rows": delegation_rows(by),
        "form": form,
        "may_name": delegation_policy.may_name_delegate(by, rights),
        "lent": rights.lent,
        "days_max": delegation_policy.DELEGATION_MAX.days,
    }
    return render(
        request, "tenants/approvers/delegation/delegations.html", context, status=422 if form.is_bound else 200
    )


@login_required
@require_POST
def delegation_end(request: HttpRequest, pk: int) -> HttpResponse:
    row = delegation_actions.end_delegation(pk, by=actor(request))
    messages.success(request, f"{row.deputy.name} is no longer a delegate of {row.approver.name}.")
    return redirect("delegations")
