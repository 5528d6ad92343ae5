"""The page of an import, for operators with a second factor: a preview, then exactly what it showed."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from accounts.core.actor import Actor
from accounts.core.request_actor import operator, refuse_without_second_factor
from portal.core.errors import refuse
from portal.web.refusals import refusal_in_form
from tenants.onboarding.imports import actions, queries
from tenants.onboarding.imports.actions import ImportHandling
from tenants.onboarding.imports.forms import PAGE_ROWS_MAX, ImportForm
from tenants.onboarding.imports.shown import counts_sentence, shown_rows
from tenants.onboarding.imports.sources.reading import SOURCES
from tenants.onboarding.imports.types import Outcome, report_digest
from tenants.requests.decisions.types import OverPromise

GO = "import"


@login_required
@never_cache
@require_http_methods(["GET", "POST"])
def team_import(request: HttpRequest) -> HttpResponse:
    """A POST tries the import. With `go` it is carried out, if it would still do what `seen` says."""
    by = operator(request)
    refuse_without_second_factor(request)
    if request.method == "GET":
        return render(request, "tenants/onboarding/imports/import.html", {"form": ImportForm()})
    form = ImportForm(request.POST, request.FILES)
    if form.is_valid():
        with refusal_in_form(form):
            return render(request, "tenants/onboarding/imports/import.html", _imported(request, form, by))
    return render(request, "tenants/onboarding/imports/import.html", {"form": form}, status=422)


def _imported(request: HttpRequest, form: ImportForm, by: Actor) -> dict[str, Any]:
    data = form.content()
    plan = SOURCES[form.cleaned_data["source"]](data, form.options(queries.class_slugs()))
    if len(plan.rows) > PAGE_ROWS_MAX:
        text = f"The file has {len(plan.rows)} rows, and the page takes {PAGE_ROWS_MAX}. Use manage.py import_teams."
        raise refuse("too_large", text, field="file")
    reason = form.cleaned_data["over_promise"]
    handling = ImportHandling(form.cleaned_data["adds_accounts"], OverPromise(bool(reason), reason))
    rows = actions.carry_out(plan, is_applied=False, handling=handling, by=by)
    seen, is_asked = report_digest(rows), request.POST.get("go") == GO
    is_applied = is_asked and request.POST.get("seen") == seen
    if is_applied:
        rows = actions.carry_out(plan, is_applied=True, handling=handling, by=by)
    sent = request.POST.copy()
    sent["text"] = data.decode("utf-8-sig")
    return {
        "form": ImportForm(sent),
        "rows": shown_rows(rows, is_applied=is_applied),
        "counts": counts_sentence(rows, is_applied=is_applied),
        "seen": seen,
        "is_applied": is_applied,
        "is_changed": is_asked and not is_applied,
        "is_something_to_do": not is_applied and any(row.outcome == Outcome.CREATE for row in rows),
    }
