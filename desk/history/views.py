"""The pages of history: of a team, and of everything that concerns a user."""

from __future__ import annotations

from datetime import date

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.dateparse import parse_date
from django.views.decorators.http import require_GET

from accounts.core.request_actor import actor
from accounts.rest.paging import page_of
from desk.history import queries as history_queries
from portal.core.errors import get_or_refuse
from tenants.models import Tenant


@login_required
@require_GET
def all_history(request: HttpRequest) -> HttpResponse:
    return _page(request, None)


@login_required
@require_GET
def team_history(request: HttpRequest, tenant: str) -> HttpResponse:
    return _page(request, get_or_refuse(Tenant.objects.visible_to(actor(request)), slug=tenant))


def _page(request: HttpRequest, team: Tenant | None) -> HttpResponse:
    by = actor(request)
    chosen = history_queries.HistoryFilter(
        subject=request.GET.get("subject", ""),
        who=" ".join(request.GET.get("who", "").split()),
        since=_date(request.GET.get("since", "")),
        until=_date(request.GET.get("until", "")),
    )
    found = history_queries.events(by, chosen, tenant=team.slug if team else "")
    page = page_of(found, cursor=request.GET.get("cursor"))
    is_first_page = not (chosen.is_on or request.GET.get("cursor"))
    context = {
        "tenant": team,
        "lines": history_queries.history_entries(page.items),
        "chosen": chosen,
        "subjects": [
            (key, label)
            for key, (label, _nouns) in history_queries.SUBJECTS.items()
            if team is None or key != "catalog"
        ],
        "drift": history_queries.team_drift(team) if team and is_first_page else [],
        "sees_all": by.sees_all,
        "next_cursor": page.next_cursor,
    }
    return render(request, "desk/history/history.html", context)


def _date(text: str) -> date | None:
    try:
        return parse_date(text)
    except ValueError:
        return None
