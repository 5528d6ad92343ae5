"""Pages of requests for a team: filing one, and the page on which an approver decides it."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_POST

from accounts.core.actor import Actor
from accounts.core.request_actor import actor
from accounts.events import queries as event_queries
from accounts.events.texts import verb_text
from portal.core.errors import get_or_refuse, refuse_if
from portal.web.refusals import refusal_in_form
from tenants.approvers import queries
from tenants.core import queries as core_queries
from tenants.models import TeamRequest
from tenants.onboarding.bundles.shown import bundle_contents
from tenants.onboarding.team_requests import actions as team_request_actions
from tenants.onboarding.team_requests import queries as teams
from tenants.onboarding.team_requests.forms import TeamDecisionForm
from tenants.requests.decisions import shown
from tenants.requests.decisions.types import OverPromise
from tenants.requests.rules import queries as rule_queries
from tenants.requests.rules.policy import BUNDLE


@login_required
@require_POST
def team_request_withdraw(request: HttpRequest, pk: int) -> HttpResponse:
    team_request_actions.withdraw_team_request(pk, by=actor(request))
    messages.success(request, "Withdrawn.")
    return redirect("start")


@login_required
@require_GET
def team_request(request: HttpRequest, pk: int) -> HttpResponse:
    by = actor(request)
    found = get_or_refuse(TeamRequest.objects.visible_to(by), pk=pk)
    return render(request, "tenants/onboarding/team_requests/team_request.html", _context(found, by))


@login_required
@require_POST
def team_request_decide(request: HttpRequest, pk: int) -> HttpResponse:
    by = actor(request)
    found = get_or_refuse(TeamRequest.objects.visible_to(by), pk=pk)
    [row] = teams.team_request_rows([found], by=by)
    refuse_if(row.refusal)
    form = TeamDecisionForm(request.POST, bundle=row.bundle, by_rule=rule_queries.is_rule_on(BUNDLE))
    if form.is_valid():
        typed = form.cleaned_data
        with refusal_in_form(form):
            team_request_actions.decide_team(
                pk,
                approve=typed["decision"] == "approve",
                slug=typed["slug"],
                units=form.units(),
                reason=typed["reason"],
                over_promise=OverPromise(typed["over_promise"], typed["reason"]),
                by=by,
            )
            messages.success(request, f"Decision saved. {row.who} is notified.")
            return redirect("team-request", pk)
    return render(
        request, "tenants/onboarding/team_requests/team_request.html", _context(found, by, form=form), status=422
    )


def _context(found: TeamRequest, by: Actor, *, form: TeamDecisionForm | None = None) -> dict[str, Any]:
    [row] = teams.team_request_rows([found], by=by)
    is_pending = row.state == TeamRequest.State.PENDING
    mine = queries.rights_of(by)
    show_decide = bool(mine) and is_pending
    facts = teams.bundle_line_impacts(row.bundle, at=core_queries.database_now()) if show_decide else []
    errors = form.line_errors() if form else {}
    by_rule = rule_queries.is_rule_on(BUNDLE) if form is None else bool(form.line_keys)
    return {
        "team": row,
        "by_rule": by_rule,
        "contents": bundle_contents(row.bundle),
        "lines": [
            {
                "slug": one.line.slug,
                "name": one.line.name,
                "unit": one.line.unit,
                "asked": one.line.units,
                "value": form[f"units-{one.line.slug}"].value() if form and by_rule else one.line.units,
                "pool": one.pool,
                "problem": shown.overcommit_sentence(one.excess) if one.excess else "",
                "error": errors.get(one.line.slug, ""),
            }
            for one in facts
        ],
        "curves": [one.curve for one in facts],
        "over_promised": " ".join(shown.overcommit_sentence(one.excess) for one in facts if one.excess),
        "slug": (form["slug"].value() if form else "") or row.slug,
        "form": form,
        "is_own": found.user_id == by.user_id,
        "show_decide": show_decide,
        "stands_in_for": mine.lenders([line.slug for line in row.bundle.lines], None, found.user_id),
        "may_decide": row.refusal,
        "events": [
            {"at": one.at, "who": one.actor, "sentence": verb_text(one.verb, one.after), "name": one.name}
            for one in event_queries.events_of_row(found)[:20]
        ],
    }
