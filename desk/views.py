"""Pages that join apps: where a person lands, a team's home, the catalog, health."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET
from django.views.decorators.vary import vary_on_headers
from django_htmx.http import reswap

from accounts.edge import actor, operator
from accounts.models import Role
from catalog import queries as catalog
from catalog.queries.banner import banner
from desk import catalog_pages, queries
from desk.queries.catalog_checks import catalog_checks
from desk.queries.health import health as health_of
from desk.queries.starting import starts_now
from tenants import policy as tenants_policy
from tenants import queries as tenants
from workloads import policy
from workloads import queries as workloads
from workloads.queries import launching


@login_required
@require_GET
def home(request: HttpRequest) -> HttpResponse:
    """To the person's own team; staff without one to their work; everybody else to the start."""
    by = actor(request)
    team = queries.first_team(by)
    if team is not None:
        return redirect("tenant-home", team.slug)
    if by.has_role(Role.APPROVER):
        return redirect("inbox")
    if by.has_role(Role.OPERATOR):
        return redirect("health")
    return redirect("start")


@login_required
@require_GET
def tenant_home(request: HttpRequest, tenant: str) -> HttpResponse:
    by = actor(request)
    namespace, team = workloads.team(by, tenant)
    state = queries.home(namespace)
    may_launch = launching.may_launch_any(by, namespace, team)
    context = {
        "state": state,
        "role": team.role,
        "may_launch": may_launch,
        "may_open": policy.may_open_any(team),
        "may_request": tenants_policy.may_file(by, tenants.standing(by, namespace.tenant)),
        "starts_now": [] if may_launch else starts_now(by, namespace, state.holdings),
        "banner": banner(namespace.cluster_id),
    }
    return render(request, "desk/home.html", context)


@login_required
@require_GET
@vary_on_headers("HX-Request")
def catalog_page(request: HttpRequest) -> HttpResponse:
    context = catalog_pages.catalog(request.GET, by=actor(request))
    return render(request, "desk/_catalog_answer.html" if _is_fragment(request) else "desk/catalog.html", context)


@login_required
@require_GET
@vary_on_headers("HX-Request")
def choose(request: HttpRequest) -> HttpResponse:
    """Help me choose: all questions, one answer with all its reasons."""
    context = catalog_pages.choose(request.GET, by=actor(request))
    return render(request, "desk/_advice.html" if _is_fragment(request) else "desk/choose.html", context)


@login_required
@require_GET
def compare(request: HttpRequest) -> HttpResponse:
    """Classes side by side; those named by `class`, or all."""
    return render(request, "desk/compare.html", catalog_pages.compare(request.GET.getlist("class"), by=actor(request)))


@login_required
@require_GET
def health(request: HttpRequest) -> HttpResponse:
    """For operators; for everybody else it is not there. `?part=catalog` is only the standing checks, and of these only
    the freshness when `seen` is what the page shows already.
    """
    by = operator(request)
    cluster = catalog.cluster()
    checks = catalog_checks(cluster, is_staff=bool(by.user and by.user.is_staff))
    if request.GET.get("part") != "catalog":
        return render(request, "desk/health.html", {"health": health_of(cluster, checks), "checks": checks})
    if request.GET.get("seen") != checks.digest:
        context = {"health": health_of(cluster, checks), "checks": checks, "is_fragment": True}
        return render(request, "desk/_catalog_checks.html", context)
    return reswap(render(request, "desk/_catalog_checks_fresh.html", {"checks": checks, "is_alone": True}), "none")


def _is_fragment(request: HttpRequest) -> bool:
    """htmx asks for a part, but for the whole page when it goes back to one that it no longer has."""
    return "HX-Request" in request.headers and "HX-History-Restore-Request" not in request.headers
