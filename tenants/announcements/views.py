"""The operators' page of announcements, and the page of one for its audience."""

from __future__ import annotations

from datetime import timedelta

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from accounts.core.request_actor import actor, operator
from portal.core.errors import get_or_refuse
from portal.web.refusals import refusal_in_form
from tenants.announcements import actions, queries
from tenants.announcements.forms import AnnouncementForm
from tenants.models import Announcement

SHOWN_MAX = 50


@login_required
@require_http_methods(["GET", "POST"])
def announcement_list(request: HttpRequest) -> HttpResponse:
    """For operators; 404 for all other users."""
    by, now = operator(request), timezone.localtime()
    form = AnnouncementForm(request.POST or None, initial={"starts": now, "until": now + timedelta(days=7)})
    if form.is_valid():
        with refusal_in_form(form):
            row = actions.announce(**form.values(), by=by)
            messages.success(request, "Announcement published.")
            return redirect("announcement", row.pk)
    context = {"rows": Announcement.objects.all()[:SHOWN_MAX], "form": form, "shown_max": SHOWN_MAX, "now": now}
    return render(request, "tenants/announcements/announcements.html", context, status=422 if form.is_bound else 200)


@login_required
@require_GET
def announcement(request: HttpRequest, pk: int) -> HttpResponse:
    by = actor(request)
    row = get_or_refuse(queries.announcements_visible_to(by), pk=pk)
    is_over = row.withdrawn_at is not None or row.period.upper <= timezone.now()
    context = {"row": row, "operates": by.operates, "is_over": is_over}
    if by.operates and row.wants_acknowledgement:
        context["done"], context["reached"] = queries.acknowledged_of(row)
    return render(request, "tenants/announcements/announcement.html", context)


@login_required
@require_POST
def announcement_withdraw(request: HttpRequest, pk: int) -> HttpResponse:
    actions.withdraw_announcement(pk, by=operator(request))
    messages.success(request, "Announcement withdrawn.")
    return redirect("announcements")


@login_required
@require_POST
def announcement_acknowledge(request: HttpRequest, pk: int) -> HttpResponse:
    actions.acknowledge(pk, by=actor(request))
    return redirect("home")
