"""Pages about teams to be: asking for one, and the page on which an approver decides it."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_POST

from accounts import queries as accounts
from accounts.actor import Actor
from accounts.edge import actor
from accounts.sentences import sentence
from portal.errors import get_or_refuse, refusal_beside, refuse_if
from tenants import founding, member_views, queries, shown
from tenants.decisions import OverPromise
from tenants.founding_forms import TeamDecisionForm, TeamForm, contents
from tenants.models import TeamRequest
from tenants.queries import founding as teams
from tenants.queries import rules
from tenants.rule_policy import BUNDLE


@login_required
@require_POST
def team_ask(request: HttpRequest) -> HttpResponse:
    form = TeamForm(request.POST, bundles=teams.bundle_rows(teams.bundles()))
    if form.is_valid():
        with refusal_beside(form):
            founding.ask_for_team(by=actor(request), **form.cleaned_data)
            messages.success(request, "Sent. Approvers are told by mail; their answer comes the same way.")
            return redirect("start")
    return member_views.start_page(request, team_form=form, status=422)


@login_required
@require_POST
def team_withdraw(request: HttpRequest, pk: int) -> HttpResponse:
    founding.withdraw_team_request(pk, by=actor(request))
    messages.success(request, "Withdrawn.")
    return redirect("start")


@login_required
@require_POST
def try_portal(request: HttpRequest) -> HttpResponse:
    tenant = founding.try_portal(by=actor(request))
    messages.success(request, "Your trial has begun: it takes a few seconds until everything is there.")
    return redirect("tenant-home", tenant.slug)


@login_required
@require_GET
def team_request(request: HttpRequest, pk: int) -> HttpResponse:
    by = actor(request)
    found = get_or_refuse(TeamRequest.objects.visible_to(by), pk=pk)
    return render(request, "tenants/team_request.html", _context(found, by))


@login_required
@require_POST
def team_decide(request: HttpRequest, pk: int) -> HttpResponse:
    by = actor(request)
    found = get_or_refuse(TeamRequest.objects.visible_to(by), pk=pk)
    [row] = teams.team_rows([found], by=by)
    refuse_if(row.refusal)
    form = TeamDecisionForm(request.POST, bundle=row.bundle, by_rule=rules.is_on(BUNDLE))
    if form.is_valid():
        typed = form.cleaned_data
        with refusal_beside(form):
            founding.decide_team(
                pk,
                approve=typed["decision"] == "approve",
                slug=typed["slug"],
                units=form.units(),
                reason=typed["reason"],
                over_promise=OverPromise(typed["over_promise"], typed["reason"]),
                by=by,
            )
            messages.success(request, f"Decided; {row.who} is told.")
            return redirect("team-request", pk)
    return render(request, "tenants/team_request.html", _context(found, by, form=form), status=422)


def _context(found: TeamRequest, by: Actor, *, form: TeamDecisionForm | None = None) -> dict[str, Any]:
    [row] = teams.team_rows([found], by=by)
    is_pending = row.state == TeamRequest.State.PENDING
    mine = queries.rights(by)
    show_decide = bool(mine) and is_pending
    facts = teams.line_facts(row.bundle, at=queries.now()) if show_decide else []
    errors = form.line_errors() if form else {}
    by_rule = rules.is_on(BUNDLE) if form is None else bool(form.line_keys)
    return {
        "team": row,
        "by_rule": by_rule,
        "contents": contents(row.bundle),
        "lines": [
            {
                "slug": one.line.slug,
                "name": one.line.name,
                "unit": one.line.unit,
                "asked": one.line.units,
                "value": form[f"units-{one.line.slug}"].value() if form and by_rule else one.line.units,
                "pool": one.pool,
                "problem": shown.over_promised(one.excess) if one.excess else "",
                "error": errors.get(one.line.slug, ""),
            }
            for one in facts
        ],
        "curves": [one.curve for one in facts],
        "over_promised": " ".join(shown.over_promised(one.excess) for one in facts if one.excess),
        "slug": (form["slug"].value() if form else "") or row.slug,
        "form": form,
        "is_own": found.user_id == by.user_id,
        "show_decide": show_decide,
        "stands_in_for": mine.lenders([line.slug for line in row.bundle.lines], None, found.user_id),
        "may_decide": row.refusal,
        "events": [
            {"at": one.at, "who": one.actor, "sentence": sentence(one.verb), "name": one.name}
            for one in accounts.events_of_row(found)[:20]
        ],
    }
