"""Pages about a team's grants: what it has, until when, and what happens then."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_POST

from accounts.edge import actor
from portal.errors import get_or_refuse
from tenants import grants, line_policy, policy, queries
from tenants.measured import Measure
from tenants.models import Grant, QuotaLine, Tenant
from tenants.queries import last_days


@login_required
@require_GET
def grant_list(request: HttpRequest, tenant: str) -> HttpResponse:
    by = actor(request)
    team = get_or_refuse(Tenant.objects.visible_to(by), slug=tenant)
    standing = queries.standing(by, team)
    now = queries.now()
    decides = queries.decides(by)
    rows = [
        replace(
            row,
            refusal=grants.may_renew(by, standing, row),
            reclaim_refusal=line_policy.may_reclaim_class(by, row.slug, row.name, decides=decides),
        )
        if row.kind == Grant.Kind.BASE
        else row
        for row in last_days.grant_rows(team, at=now)
    ]
    context: dict[str, Any] = {
        "tenant": team,
        "closing": team.namespaces.exclude(closes_at=None).first(),
        "classes": last_days.by_class(rows, at=now),
        "may_request": policy.may_file(by, standing),
        "may_reclaim": line_policy.may_reclaim(by, standing),
    }
    return render(request, "tenants/grants.html", context)


@login_required
@require_POST
def grant_renew(request: HttpRequest, tenant: str, pk: int, measure: Measure) -> HttpResponse:
    filed = grants.renew(tenant, pk, by=actor(request), measure=measure)
    is_pending = filed.lines.filter(state=QuotaLine.State.PENDING).exists()
    messages.success(request, "The renewal was asked for; approvers are told." if is_pending else "Renewed by rule.")
    return redirect("request", filed.pk)
