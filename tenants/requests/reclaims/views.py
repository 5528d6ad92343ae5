"""The page on which staff reduce a team's quota."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from accounts.core.request_actor import actor
from catalog.classes import queries as catalog
from portal.core.errors import get_or_refuse, refuse_if
from portal.web.refusals import refusal_in_form
from tenants.approvers import queries as approver_queries
from tenants.core.forms import start_of_day
from tenants.members import queries
from tenants.models import Grant, Tenant
from tenants.requests.reclaims import actions as reclaim_actions
from tenants.requests.reclaims import policy as reclaim_policy
from tenants.requests.reclaims.forms import ReclaimForm
from tenants.requests.types import ReclaimLine


@login_required
@require_http_methods(["GET", "POST"])
def grant_reclaim(request: HttpRequest, tenant: str, pk: int) -> HttpResponse:
    by = actor(request)
    team = get_or_refuse(Tenant.objects.visible_to(by), slug=tenant)
    refuse_if(reclaim_policy.may_reclaim(by, queries.standing_of(by, team)))
    bases = Grant.objects.filter(tenant=team, kind=Grant.Kind.BASE).select_related("gpu_class")
    grant = get_or_refuse(bases, pk=pk)
    slug, name = grant.gpu_class.slug, grant.gpu_class.name
    refuse_if(reclaim_policy.may_reclaim_class(by, slug, name, decides=approver_queries.classes_decided_by(by)))
    # The first whole day that gives the team the full notice period.
    first_day = timezone.localdate(timezone.now() + reclaim_policy.NOTICE) + timedelta(days=1)
    form = ReclaimForm(request.POST or None, initial={"from_date": first_day})
    errors: dict[Any, str] = {}
    if form.is_valid():
        typed = form.cleaned_data
        line = ReclaimLine(slug, typed["units"], start_of_day(typed["from_date"]))
        form.name_lines([slug])
        with refusal_in_form(form):
            filed = reclaim_actions.file_reclaim(tenant, lines=[line], justification=typed["justification"], by=by)
            messages.success(request, "Reduction proposed. The team is notified, and another approver decides.")
            return redirect("request", filed.pk)
        errors = form.line_errors()
    context = {
        "tenant": team,
        "grant": grant,
        "unit": catalog.unit_of(grant.gpu_class),
        "form": form,
        "error": errors.get(slug, ""),
        "notice_days": reclaim_policy.NOTICE.days,
    }
    return render(request, "tenants/requests/reclaims/reclaim.html", context, status=422 if form.is_bound else 200)
