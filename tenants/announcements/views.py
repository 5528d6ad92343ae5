"""The operators' page of announcements, and the page of one for its audience."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from accounts.core.actor import Actor
from accounts.core.request_actor import actor, operator
from catalog.classes import queries as class_queries
from catalog.models import GpuClass
from portal.core.errors import get_or_refuse
from portal.web.refusals import refusal_in_form
from tenants.announcements import actions, queries, shown
from tenants.announcements.forms import AnnouncementForm, EndForm
from tenants.announcements.policy import TITLE_MAX
from tenants.models import Announcement

SHOWN_MAX = 50


@login_required
@require_http_methods(["GET", "POST"])
def announcement_list(request: HttpRequest) -> HttpResponse:
    """For operators; 404 for all other users."""
    by, now = operator(request), timezone.localtime()
    initial = {"starts": now, "until": now + timedelta(days=7), **_about_retirement(request.GET.get("retiring", ""))}
    form = AnnouncementForm(request.POST or None, initial=initial)
    if form.is_valid():
        with refusal_in_form(form):
            row = actions.announce(**form.values(), by=by)
            messages.success(request, "Announcement published.")
            return redirect("announcement", row.pk)
    context = {"rows": Announcement.objects.all()[:SHOWN_MAX], "form": form, "shown_max": SHOWN_MAX, "now": now}
    return render(request, "tenants/announcements/announcements.html", context, status=422 if form.is_bound else 200)


def _about_retirement(slug: str) -> dict[str, Any]:
    """Suggested values for an announcement to the users of a class that is being retired; none for other classes."""
    one = GpuClass.objects.filter(slug=slug, life_cycle=GpuClass.LifeCycle.RETIRING).select_related("successor").first()
    if one is None:
        return {}
    found = {
        "title": f"{one.name} is being retired"[:TITLE_MAX],
        "body": class_queries.retirement_notice(one),
        "severity": Announcement.Severity.WARNING,
        "audience": Announcement.Audience.CLASSES,
        "classes": [one.slug],
    }
    return found | ({"until": timezone.localtime(one.runs_until)} if one.runs_until else {})


@login_required
@require_GET
def announcements_now(request: HttpRequest) -> HttpResponse:
    """The part of every page with the announcements in force. 204 if they are still those of the digest `seen`."""
    rows = [row["found"] for row in queries.banner_rows(actor(request).person.pk)]
    digest = shown.digest_of(rows)
    if request.GET.get("announced") == (digest or "-"):
        return HttpResponse(status=204)
    context = {"announcements": [shown.banner(row) for row in rows], "announced": digest}
    return render(request, "components/page/_announcements_live.html", context)


@login_required
@require_GET
def announcement(request: HttpRequest, pk: int) -> HttpResponse:
    by = actor(request)
    row = get_or_refuse(queries.announcements_visible_to(by), pk=pk)
    return _page(request, by, row, EndForm(initial={"until": timezone.localtime(row.period.upper)}))


def _page(request: HttpRequest, by: Actor, row: Announcement, form: EndForm) -> HttpResponse:
    is_over = queries.is_over(row, at=timezone.now())
    retiring = shown.migrations(queries.retiring_of(row, by.person.pk))
    context = {"row": row, "operates": by.operates, "is_over": is_over, "migrations": retiring, "form": form}
    if by.operates and row.wants_acknowledgement:
        context["done"], context["reached"] = queries.acknowledged_of(row)
    status = 422 if form.is_bound else 200
    return render(request, "tenants/announcements/announcement.html", context, status=status)


@login_required
@require_POST
def announcement_end(request: HttpRequest, pk: int) -> HttpResponse:
    """Changes until when it is shown."""
    by = operator(request)
    row = get_or_refuse(Announcement.objects.all(), pk=pk)
    form = EndForm(request.POST)
    if form.is_valid():
        with refusal_in_form(form):
            actions.change_end(row.pk, ends=form.cleaned_data["until"], by=by)
            messages.success(request, "The end was changed.")
            return redirect("announcement", row.pk)
    return _page(request, by, row, form)


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
