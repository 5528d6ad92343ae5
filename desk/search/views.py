"""The page of search results."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from accounts.core.request_actor import actor
from desk.search import queries
from desk.search.types import TEXT_MAX


@login_required
@require_GET
def search(request: HttpRequest) -> HttpResponse:
    text = " ".join(request.GET.get("q", "").split())[:TEXT_MAX]
    by = actor(request)
    context = {"q": text, "groups": queries.search(by, text), "sees_all": by.sees_all}
    return render(request, "desk/search/search.html", context)
