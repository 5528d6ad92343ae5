"""The admin's pages of proposed classes."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import path
from django.views.decorators.http import require_POST

from accounts.core.actor import Actor
from accounts.core.request_actor import actor
from catalog.classes import actions as class_actions
from catalog.classes.admin_pages import admin_page
from catalog.classes.proposals import actions as proposal_actions
from catalog.classes.proposals import queries as proposal_queries
from catalog.discovery.types import ClassProposal
from catalog.models import GpuClass
from cluster.reads import queries as read_queries
from portal.core.errors import Refused, refuse


class ProposalPagesMixin:
    """Adds the pages of proposed classes to the ModelAdmin of GpuClass."""

    admin_site: Any

    def get_urls(self) -> list[Any]:
        pages = [
            path("proposed/", admin_page(self.admin_site, proposals_view), name="catalog_gpuclass_proposed"),
            path("proposed/<slug:slug>/", admin_page(self.admin_site, decide_view), name="catalog_gpuclass_decide"),
        ]
        return [*pages, *super().get_urls()]  # type: ignore[misc]


def proposals_view(request: HttpRequest, context: dict[str, Any]) -> HttpResponse:
    cluster = read_queries.current_cluster()
    found = proposal_queries.open_proposals(cluster)
    known = set(GpuClass.objects.filter(cluster=cluster).values_list("slug", flat=True))
    more = {
        "title": "Proposed classes",
        "is_known": found is not None,
        "proposals": [one for one in found.proposals if one.slug not in known] if found else [],
        "problems": found.problems if found else (),
        "dismissed": proposal_queries.dismissed_proposals(cluster),
    }
    return render(request, "admin/catalog/proposals.html", {**context, **more})


@require_POST
def decide_view(request: HttpRequest, context: dict[str, Any], *, slug: str) -> HttpResponse:
    """One of the buttons beside a proposal; a refusal is a message above the list."""
    try:
        return _decide(request, slug, actor(request))
    except Refused as refused:
        messages.error(request, str(refused))
        return redirect("admin:catalog_gpuclass_proposed")


def _decide(request: HttpRequest, slug: str, by: Actor) -> HttpResponse:
    verb = request.POST.get("verb", "")
    if verb == "dismiss":
        proposal_actions.dismiss_proposal(slug, reason=request.POST.get("reason", ""), by=by)
        messages.success(request, f"{slug} is no longer proposed.")
    elif verb == "restore":
        proposal_actions.restore_proposal(slug, by=by)
        messages.success(request, f"{slug} is proposed again.")
    elif verb == "accept":
        made = proposal_actions.accept_proposals([_proposal(slug)], by=by)
        messages.success(request, f"{slug} is open." if made else f"{slug} already exists.")
    elif verb == "edit":
        draft = class_actions.create_class(slug=slug, by=by, **proposal_actions.class_values(_proposal(slug)))
        messages.success(request, f"{slug} is a draft: edit and save it, then activate it.")
        return redirect("class-edit", draft.slug)
    return redirect("admin:catalog_gpuclass_proposed")


def _proposal(slug: str) -> ClassProposal:
    found = proposal_queries.open_proposals(read_queries.current_cluster())
    for one in found.proposals if found else ():
        if one.slug == slug:
            return one
    raise refuse("not_proposed", f"{slug} is no longer proposed: the nodes have changed, or it was dismissed.")
