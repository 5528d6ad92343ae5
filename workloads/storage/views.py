"""The page of a team's volumes and its two buttons. Parse, call one action, render."""

from __future__ import annotations

from urllib.parse import urlencode

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from accounts.core.request_actor import actor
from portal.core.errors import get_or_refuse, refuse
from portal.ui.text import date_and_time
from workloads.core import policy, queries
from workloads.storage import actions as storage_actions
from workloads.storage.queries import deletes_at, undeleted, volume_rows


@login_required
@require_GET
def volume_list(request: HttpRequest, tenant: str) -> HttpResponse:
    by = actor(request)
    namespace, team = queries.team(by, tenant)
    rows, as_of = volume_rows(by, namespace, team)
    context = {
        "tenant": namespace.tenant,
        "rows": rows,
        "may_launch": policy.may_launch_in(by, team) or policy.may_add(team),
        "as_of": as_of.at,
        "is_stale": not as_of.is_current,
    }
    return render(request, "workloads/storage/volumes.html", context)


@login_required
@require_POST
def volume_delete(request: HttpRequest, tenant: str, name: str) -> HttpResponse:
    by = actor(request)
    namespace, _team = queries.team(by, tenant)
    get_or_refuse(undeleted(namespace), name=name)
    if request.POST.get("confirm", "").strip() != name:
        raise refuse("name_differs", f"Enter '{name}' to confirm the deletion. Nothing was changed.", field="confirm")
    at = deletes_at(storage_actions.request_delete(tenant, name, by=by))
    messages.success(request, f"{name} is deleted on {date_and_time(at)} unless a member keeps it." if at else name)
    return redirect("volumes", tenant)


@login_required
@require_POST
def volume_keep(request: HttpRequest, tenant: str, name: str) -> HttpResponse:
    """`then`: "launch" redirects back to the launch form with the volume."""
    storage_actions.cancel_delete(tenant, name, by=actor(request))
    messages.success(request, f"{name} is kept.")
    if request.POST.get("then") == "launch":
        return redirect(f"{reverse('launch', args=[tenant])}?{urlencode({'volume': name})}")
    return redirect("volumes", tenant)
