"""The page Health, for operators."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET
from django_htmx.http import reswap

from accounts.core.request_actor import operator
from cluster.reads import queries as read_queries
from desk.health.catalog_checks import catalog_checks
from desk.health.queries import health as health_of


@login_required
@require_GET
def health(request: HttpRequest) -> HttpResponse:
    """For operators; 404 for all other users. `?part=catalog` returns only the standing checks, and of these only the
    freshness if `seen` is the digest of what the page already shows.
    """
    by = operator(request)
    cluster = read_queries.current_cluster()
    checks = catalog_checks(cluster, is_staff=bool(by.user and by.user.is_staff))
    if request.GET.get("part") != "catalog":
        return render(request, "desk/health/health.html", {"health": health_of(cluster, checks), "checks": checks})
    if request.GET.get("seen") != checks.digest:
        context = {"health": health_of(cluster, checks), "checks": checks, "is_fragment": True}
        return render(request, "desk/health/_catalog_checks.html", context)
    return reswap(
        render(request, "desk/health/_catalog_checks_freshness.html", {"checks": checks, "is_alone": True}), "none"
    )
