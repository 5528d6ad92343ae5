"""The page's part about a team's life: suspend, resume, close, and what closing takes."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from accounts.actor import Actor
from accounts.edge import actor
from portal.errors import get_or_refuse, refuse, refuse_if
from tenants import life, life_policy, policy, queries
from tenants.closing_letters import moment
from tenants.goes import LookInside
from tenants.models import Namespace
from tenants.queries import going, stuck


def context(row: Namespace | None, by: Actor, look_inside: LookInside | None) -> dict[str, Any]:
    """For templates/tenants/_life.html. What goes is read for those who may close it, while there is a choice."""
    if row is None:
        return {"life": None, "goes": None, "stuck": None}
    now = queries.now()
    own = life.life_of(row)
    close = life_policy.may_close(by, own, at=now)
    return {
        "life": {
            "state": life_policy.state(own, at=now),
            "closes_at": row.closes_at,
            "volumes_until": row.volumes_until,
            "gone_at": row.gone_at,
            "told": queries.last_told(row),
            "may_operate": policy.may_operate(by) is None,
            "resume": life_policy.may_resume(by, own, at=now),
            "close": close,
        },
        "goes": going.goes(row, look_inside(row.pk), at=now) if look_inside and close is None else None,
        "stuck": stuck.of(row),
        "terms": {
            "grace_hours": life_policy.GRACE_HOURS,
            "grace_hours_max": life_policy.GRACE_HOURS_MAX,
            "keep_days": life_policy.KEEP_DAYS,
            "keep_days_max": life_policy.KEEP_DAYS_MAX,
        },
    }


@login_required
@require_POST
def namespace_set(request: HttpRequest, tenant: str) -> HttpResponse:
    """Suspend, resume or close: for operators; who closes types the team's short name."""
    by = actor(request)
    namespace = get_or_refuse(Namespace.objects.visible_to(by), tenant__slug=tenant)
    refuse_if(policy.may_operate(by))
    to = request.POST.get("to", "")
    if to == life_policy.CLOSED and request.POST.get("confirm", "").strip() != tenant:
        raise refuse("name_differs", f"Type '{tenant}' to close it; nothing was changed.", field="confirm")
    row = life.set_wanted(
        namespace.pk,
        to=to,
        because=request.POST.get("because", ""),
        grace_hours=_number(request, "grace_hours", life_policy.GRACE_HOURS),
        keep_days=_number(request, "keep_days", life_policy.KEEP_DAYS),
        by=by,
    )
    said = {
        life_policy.ACTIVE: "It is open again.",
        life_policy.SUSPENDED: "Nothing new starts, what runs goes on.",
        life_policy.CLOSED: f"What runs ends on {moment(row.closes_at)}." if row.closes_at else "",
    }
    messages.success(request, f"{row.name}: {said[row.wanted]} Its owners and managers are told.")
    return redirect("team", tenant)


def _number(request: HttpRequest, name: str, default: int) -> int:
    """What is no number is told as one that is out of bounds: -1."""
    text = request.POST.get(name, "").strip()
    if not text:
        return default
    return int(text) if text.isascii() and text.isdigit() and len(text) < 6 else -1
