"""The page on which an approver names a deputy."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST

from accounts.edge import actor
from portal.errors import refusal_beside
from tenants import deputies, deputy_policy, queries
from tenants.forms import DATE, end_of, start_of
from tenants.queries.deputies import deputy_rows

DAYS_DEFAULT = 14


class DeputyForm(forms.Form):
    email = forms.EmailField(label="E-mail address", max_length=254, help_text="Of anybody with an account here.")
    starts_at = forms.DateField(label="First day", widget=DATE)
    ends_at = forms.DateField(label="Last day", widget=DATE)


@login_required
@require_http_methods(["GET", "POST"])
def deputy_list(request: HttpRequest) -> HttpResponse:
    by = actor(request)
    rights = queries.rights(by)
    today = timezone.localdate()
    initial = {"starts_at": today, "ends_at": today + timedelta(days=DAYS_DEFAULT)}
    form = DeputyForm(request.POST or None, initial=initial)
    if form.is_valid():
        typed = form.cleaned_data
        with refusal_beside(form):
            starts, ends = start_of(typed["starts_at"]), end_of(typed["ends_at"])
            row = deputies.name_deputy(email=typed["email"], starts=starts, ends=ends, by=by)
            messages.success(request, f"{row.deputy.name} stands in for you then, and is told by mail.")
            return redirect("deputies")
    context: dict[str, Any] = {
        "rows": deputy_rows(by),
        "form": form,
        "may_name": deputy_policy.may_name(by, rights),
        "lent": rights.lent,
        "days_max": deputy_policy.PERIOD_MAX.days,
    }
    return render(request, "tenants/deputies.html", context, status=422 if form.is_bound else 200)


@login_required
@require_POST
def deputy_end(request: HttpRequest, pk: int) -> HttpResponse:
    row = deputies.end_deputy(pk, by=actor(request))
    messages.success(request, f"{row.deputy.name} does not stand in for {row.approver.name} any more.")
    return redirect("deputies")
