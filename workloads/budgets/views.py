"""The buttons for a team's budget, on its page Usage: operators set it, owners confirm launches beyond it."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from accounts.core.request_actor import actor
from portal.core.errors import get_or_refuse, refuse, refuse_if
from tenants.models import Tenant
from workloads.budgets import actions, policy
from workloads.budgets.forms import BudgetForm


@login_required
@require_POST
def budget_set(request: HttpRequest, tenant: str) -> HttpResponse:
    by = actor(request)
    get_or_refuse(Tenant.objects.visible_to(by), slug=tenant)
    refuse_if(policy.may_set_budget(by, amount=None))
    form = BudgetForm(request.POST)
    if not form.is_valid():
        field, problems = next(iter(form.errors.items()))
        raise refuse("bad_budget", " ".join(str(one) for one in problems), field=field)
    actions.set_budget(tenant, **form.cleaned_data, by=by)
    messages.success(request, "The budget is saved." if form.cleaned_data["amount"] else "The team has no budget.")
    return redirect("team-usage", tenant)


@login_required
@require_POST
def budget_confirm(request: HttpRequest, tenant: str) -> HttpResponse:
    actions.confirm_launches(tenant, by=actor(request))
    messages.success(request, "New launches are accepted until the end of the month.")
    return redirect("team-usage", tenant)
