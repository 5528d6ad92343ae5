"""The button that renews a grant."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from accounts.core.request_actor import actor
from tenants.models import QuotaLine
from tenants.requests.renewals import actions as renewal_actions
from tenants.requests.usage_evidence import MeasureUsage


@login_required
@require_POST
def grant_renew(request: HttpRequest, tenant: str, pk: int, measure: MeasureUsage) -> HttpResponse:
    filed = renewal_actions.renew_grant(tenant, pk, by=actor(request), measure=measure)
    is_pending = filed.lines.filter(state=QuotaLine.State.PENDING).exists()
    messages.success(
        request, "Renewal requested. Approvers are notified." if is_pending else "Renewed automatically by a rule."
    )
    return redirect("request", filed.pk)
