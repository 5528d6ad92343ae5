"""The button by which operators suspend, resume and close a team."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from accounts.core.request_actor import actor
from portal.core.errors import get_or_refuse, refuse, refuse_if
from portal.ui.text import time_with_zone
from tenants.core import policy
from tenants.lifecycle import actions as lifecycle_actions
from tenants.lifecycle import policy as lifecycle_policy
from tenants.models import Namespace


@login_required
@require_POST
def namespace_set(request: HttpRequest, tenant: str) -> HttpResponse:
    """Suspends, resumes or closes; only for operators. To close, the operator types the team's short name."""
    by = actor(request)
    namespace = get_or_refuse(Namespace.objects.visible_to(by), tenant__slug=tenant)
    refuse_if(policy.may_operate(by))
    to = request.POST.get("to", "")
    if to == lifecycle_policy.CLOSED and request.POST.get("confirm", "").strip() != tenant:
        raise refuse("name_differs", f"Type '{tenant}' to confirm. Nothing was changed.", field="confirm")
    row = lifecycle_actions.set_namespace_state(
        namespace.pk,
        to=to,
        because=request.POST.get("because", ""),
        grace_hours=_number(request, "grace_hours", lifecycle_policy.GRACE_HOURS),
        keep_days=_number(request, "keep_days", lifecycle_policy.KEEP_DAYS),
        by=by,
    )
    said = {
        lifecycle_policy.ACTIVE: "The team is active again.",
        lifecycle_policy.SUSPENDED: "No new workloads start. Running workloads continue.",
        lifecycle_policy.CLOSED: f"Running workloads are stopped on {time_with_zone(row.closes_at)}."
        if row.closes_at
        else "",
    }
    messages.success(request, f"{row.name}: {said[row.wanted]} Its owners and managers are notified.")
    return redirect("team", tenant)


def _number(request: HttpRequest, name: str, default: int) -> int:
    """Input that is not a number becomes -1, which is refused as out of bounds."""
    text = request.POST.get(name, "").strip()
    if not text:
        return default
    return int(text) if text.isascii() and text.isdigit() and len(text) < 6 else -1
