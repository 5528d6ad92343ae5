"""The page of a team's grants: what it has, until when, and what happens then."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from accounts.core.request_actor import actor
from catalog.classes import queries as class_queries
from portal.core.errors import get_or_refuse
from tenants.approvers import queries as approver_queries
from tenants.core import queries as core_queries
from tenants.grants.timeline import chart
from tenants.grants.timeline import queries as timeline_queries
from tenants.members import queries
from tenants.models import Grant, Tenant
from tenants.requests import policy
from tenants.requests.reclaims import policy as reclaim_policy
from tenants.requests.renewals import policy as renewal_policy

# What a higher app suggests about the quota of a team, as context of the template.
ReadAdvice = Callable[[Tenant], dict[str, Any]]


@login_required
@require_GET
def grant_list(request: HttpRequest, tenant: str, read_advice: ReadAdvice | None = None) -> HttpResponse:
    """Advice is read for those who may request quota."""
    by = actor(request)
    team = get_or_refuse(Tenant.objects.visible_to(by), slug=tenant)
    standing = queries.standing_of(by, team)
    now = core_queries.database_now()
    decides = approver_queries.classes_decided_by(by)
    rows = [
        replace(
            row,
            refusal=renewal_policy.may_renew(by, standing, row),
            reclaim_refusal=reclaim_policy.may_reclaim_class(by, row.slug, row.name, decides=decides),
        )
        if row.kind == Grant.Kind.BASE
        else row
        for row in timeline_queries.grant_rows(team, at=now)
    ]
    may_request = policy.may_file(by, standing)
    context: dict[str, Any] = {
        "tenant": team,
        "closing": team.namespaces.exclude(closes_at=None).first(),
        "classes": chart.class_timelines(rows, at=now),
        "migrations": class_queries.migrations_of({row.slug for row in rows}),
        "may_request": may_request,
        "may_reclaim": reclaim_policy.may_reclaim(by, standing),
        **(read_advice(team) if read_advice and may_request is None else {}),
    }
    return render(request, "tenants/pages/grants/grants.html", context)
