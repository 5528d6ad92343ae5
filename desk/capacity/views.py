"""The page Cluster for all users, and the banner that staff publish."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_POST

from accounts.core.request_actor import actor, operator
from catalog.banner import actions as banner_actions
from catalog.classes import policy as catalog_policy
from cluster.reads import queries as read_queries
from desk.capacity import queries
from desk.capacity.forms import BannerForm
from portal.core.errors import refuse


@login_required
@require_GET
def cluster(request: HttpRequest) -> HttpResponse:
    by = actor(request)
    page = queries.cluster_page(by, read_queries.current_cluster())
    context = {
        "page": page,
        "banner": page.banner,
        "may_put": catalog_policy.may_edit(by) is None,
        "oversees": by.oversees,
        "days": queries.DAYS,
    }
    return render(request, "desk/capacity/cluster.html", context)


@login_required
@require_POST
def banner_set(request: HttpRequest) -> HttpResponse:
    """For operators; 404 for all other users."""
    by = operator(request)
    if request.POST.get("to") == "removed":
        banner_actions.remove_banner(read_queries.current_cluster(), by=by)
        messages.success(request, "Banner removed.")
        return redirect("cluster")
    form = BannerForm(request.POST)
    if not form.is_valid():
        field, errors = next(iter(form.errors.items()))
        raise refuse("invalid", f"The banner was not changed: {errors[0]}", field=field)
    cleaned = form.cleaned_data
    banner_actions.put_banner(read_queries.current_cluster(), text=cleaned["text"], until=cleaned["until"], by=by)
    messages.success(request, "Banner published on every page.")
    return redirect("cluster")
