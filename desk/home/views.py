"""The start page and a team's home."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET

from accounts.core.request_actor import actor
from accounts.models import Role
from desk.classes import viewer
from desk.home import queries
from desk.home.quick_start import quick_starts
from tenants.members import queries as member_queries
from tenants.requests import policy as tenants_policy
from workloads.core import queries as core_queries
from workloads.gateway import policy
from workloads.launch import queries as launch_queries


@login_required
@require_GET
def home(request: HttpRequest) -> HttpResponse:
    """Redirects to the user's own team; staff without a team to their work; all others to the start page."""
    by = actor(request)
    team = viewer.first_team(by)
    if team is not None:
        return redirect("tenant-home", team.slug)
    if by.has_role(Role.APPROVER):
        return redirect("inbox")
    if by.operates:
        return redirect("cockpit")
    return redirect("start")


@login_required
@require_GET
def tenant_home(request: HttpRequest, tenant: str) -> HttpResponse:
    by = actor(request)
    namespace, team = core_queries.team(by, tenant)
    state = queries.home_state(namespace)
    may_launch = launch_queries.launch_any_refusal(by, team, launch_queries.reachable_classes(namespace))
    context = {
        "state": state,
        "role": team.role,
        "may_launch": may_launch,
        "may_open": policy.may_open_any(team),
        "may_request": tenants_policy.may_file(by, member_queries.standing_of(by, namespace.tenant)),
        "starts_now": [] if may_launch else quick_starts(by, namespace),
    }
    return render(request, "desk/home/home.html", context)


@login_required
@require_GET
def quick_start(request: HttpRequest, tenant: str) -> HttpResponse:
    """What this user can start now: fetched again when the stream says that something changed."""
    by = actor(request)
    namespace, team = core_queries.team(by, tenant)
    may_launch = launch_queries.launch_any_refusal(by, team, launch_queries.reachable_classes(namespace))
    found = [] if may_launch else quick_starts(by, namespace)
    return render(request, "desk/home/_quick_start.html", {"state": {"tenant": namespace.tenant}, "starts_now": found})
