"""The page of one request: its lines, the decision form, the comments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_GET, require_POST

from accounts.core.actor import Actor
from accounts.core.request_actor import actor
from accounts.events import queries as event_queries
from catalog.models import GpuClass
from cluster.observe_only.queries import WAITING
from portal.core.errors import Refusal, get_or_refuse, refuse_if
from portal.web.refusals import refusal_in_form
from tenants.approvers import queries as approver_queries
from tenants.core import queries as core_queries
from tenants.core.forms import end_of_day, start_of_day
from tenants.grants import types as grant_types
from tenants.grants.overcommit import queries as overcommit_queries
from tenants.grants.overcommit.queries import PromiseCurve, promise_curve
from tenants.grants.promises import Promise
from tenants.grants.types import Overcommit
from tenants.members import queries as member_queries
from tenants.models import Plan, QuotaLine, QuotaRequest
from tenants.requests import policy as request_policy
from tenants.requests import queries as request_queries
from tenants.requests import shown as request_shown
from tenants.requests.comments import actions as comment_actions
from tenants.requests.comments import queries as comment_queries
from tenants.requests.comments.forms import CommentForm
from tenants.requests.decisions import actions as decision_actions
from tenants.requests.decisions import presence
from tenants.requests.decisions import queries as decision_queries
from tenants.requests.decisions import shown as decision_shown
from tenants.requests.decisions.forms import DecisionForm
from tenants.requests.decisions.queries import ClassFigures, past_lines
from tenants.requests.decisions.types import Decision, OverPromise
from tenants.requests.queries import LineRow, classes_of_request
from tenants.requests.reclaims import policy as reclaim_policy
from tenants.requests.usage_evidence import MeasureUsage


@login_required
@require_GET
def request_page(request: HttpRequest, pk: int, measure: MeasureUsage) -> HttpResponse:
    """`?units-<pk>=`, `from-` and `until-` show what deciding with these values would do."""
    by = actor(request)
    found = get_or_refuse(QuotaRequest.objects.visible_to(by).select_related("tenant"), pk=pk)
    context = _request_context(found, by, measure, typed=request.GET)
    if context["page"]["to_decide"]:
        presence.mark_request_open(pk, by.person)
    return render(request, "tenants/requests/decisions/request.html", context)


@login_required
@require_POST
def request_decide(request: HttpRequest, pk: int, measure: MeasureUsage) -> HttpResponse:
    """Decides all pending lines of this person's classes at once, each with the units and dates in the form."""
    by = actor(request)
    found = get_or_refuse(QuotaRequest.objects.visible_to(by).select_related("tenant"), pk=pk)
    row = request_queries.request_rows([found], by=by)[0]
    if not row.to_decide:
        refuse_if(row.refusal or row.lines[0].refusal)
    form = DecisionForm(request.POST, lines=row.to_decide)
    if form.is_valid():
        typed = form.cleaned_data
        measured = measure(found.tenant, classes_of_request(found)).plain
        with refusal_in_form(form):
            decision_actions.decide_request(
                pk,
                [_decision(line, typed, measured[line.gpu_class_id]) for line in row.to_decide],
                by=by,
                over_promise=OverPromise(typed["over_promise"], typed["reason"]),
            )
            messages.success(request, f"Decision saved. {found.filed_by.name} is notified.")
            return redirect("request", pk)
    return render(
        request, "tenants/requests/decisions/request.html", _request_context(found, by, measure, form=form), status=422
    )


@login_required
@require_POST
def request_comment(request: HttpRequest, pk: int, measure: MeasureUsage) -> HttpResponse:
    by = actor(request)
    found = get_or_refuse(QuotaRequest.objects.visible_to(by).select_related("tenant"), pk=pk)
    form = CommentForm(request.POST)
    if form.is_valid():
        with refusal_in_form(form):
            comment_actions.comment_request(pk, by=by, **form.cleaned_data)
            return redirect(f"{reverse('request', args=[pk])}#thread")
    context = _request_context(found, by, measure, comment_form=form)
    return render(request, "tenants/requests/decisions/request.html", context, status=422)


def _decision(line: LineRow, typed: dict[str, Any], measured: Mapping[str, Any]) -> Decision:
    """A date that was not edited keeps the exact time that was requested."""
    from_date, until_date = typed[f"from-{line.pk}"], typed[f"until-{line.pk}"]
    return Decision(
        line_id=line.pk,
        approve=typed["decision"] == "approve",
        units=typed[f"units-{line.pk}"],
        starts=None if from_date == timezone.localdate(line.asked_from) else start_of_day(from_date),
        ends=None if until_date == timezone.localdate(line.asked_until) else end_of_day(until_date),
        grace_hours=typed[f"grace-{line.pk}"],
        reason=typed["reason"],
        measured=measured,
    )


def _request_context(
    found: QuotaRequest,
    by: Actor,
    measure: MeasureUsage,
    *,
    form: DecisionForm | None = None,
    typed: Mapping[str, str] | None = None,
    comment_form: CommentForm | None = None,
) -> dict[str, Any]:
    row = request_queries.request_rows([found], by=by)[0]
    at = core_queries.database_now()
    classes = {one.pk: one for one in classes_of_request(found)}
    figures = decision_queries.class_figures(found.tenant, list(classes.values()), at=at)
    typed = form.data if form else typed or {}
    # What the approver edited is judged, not what was requested.
    edited = {line.pk: decision_shown.edited_line(line, typed) for line in row.to_decide}
    judged = [edited.get(line.pk, line) for line in row.pending]
    excesses = {line.pk: _overcommit(found, line, classes, figures, at) for line in judged}
    errors = form.line_errors() if form else {}
    mine = approver_queries.rights_of(by)
    role = member_queries.standing_of(by, found.tenant).role
    show_decide = bool(mine) and role == ""
    plan = Plan.objects.filter(request=found).first()
    page = {
        "pk": row.pk,
        "tenant": row.tenant,
        "who": row.filed_by,
        "filed_at": row.filed_at,
        "state": row.state,
        "is_asked_back": row.is_asked_back,
        "overdue_since": row.overdue_since,
        "is_reclaim": row.is_reclaim,
        "justification": row.justification,
        "pending": len(row.pending),
        "to_decide": len(row.to_decide),
        "stands_in_for": mine.lenders([line.slug for line in row.to_decide], found.tenant_id, found.filed_by_id),
        "lines": [
            decision_shown.line_context(
                line,
                number=number,
                problem=decision_shown.line_problem(
                    excesses.get(line.pk),
                    _growth(edited.get(line.pk, line), classes, figures),
                    is_over=edited.get(line.pk, line).asked_until <= at,
                ),
                error=errors.get(line.pk, ""),
                typed=typed,
            )
            for number, line in enumerate(row.lines, start=1)
        ],
        "curves": _curves(found, judged, classes, figures, at) if show_decide else [],
        "facts": decision_shown.facts_table(row.lines, figures, measure(found.tenant, classes.values()))
        if show_decide
        else None,
        "asks": [decision_shown.past_line(one) for one in past_lines(found.tenant_id, classes, request_id=found.pk)]
        if show_decide
        else [],
        "over_promised": " ".join(
            decision_shown.overcommit_sentence(excess) for line in row.to_decide if (excess := excesses[line.pk])
        ),
        "is_over_ticked": bool(typed.get("over_promise")),
        "plan": decision_shown.plan_context(
            plan.objects_planned,
            made_at=plan.made_at,
            error=plan.error_text,
            is_pending=bool(row.pending),
            is_observed=plan.error_code == WAITING,
        )
        if plan and (row.pending or plan.made_at)
        else None,
        "events": [request_shown.request_event(event) for event in event_queries.events_of_row(found)[:20]],
    }
    return {
        "page": page,
        "form": form,
        "comments": comment_queries.comment_rows(found),
        "comment_form": comment_form or CommentForm(),
        "open_by": presence.viewers_of_requests([row.pk], by.person).get(row.pk, ())
        if show_decide and row.pending
        else (),
        "may_comment": comment_queries.may_comment_on(by, found),
        "may_ask_back": show_decide and comment_queries.may_comment_on(by, found, asks_back=True) is None,
        "show_decide": show_decide,
        "live_in": request_queries.namespace_of_request(found.pk) if role and row.pending else "",
        "may_decide": row.refusal,
        "may_withdraw": request_policy.may_withdraw(
            by, member_queries.standing_of(by, found.tenant), filed_by=found.filed_by_id, is_reclaim=row.is_reclaim
        ),
        "may_reclaim": reclaim_policy.may_reclaim(by, member_queries.standing_of(by, found.tenant)),
    }


def _growth(line: LineRow, classes: dict[int, GpuClass], figures: dict[int, ClassFigures]) -> Refusal | None:
    gpu_class = classes[line.gpu_class_id]
    facts = grant_types.ClassFacts(line.slug, line.name, gpu_class.life_cycle, figures[gpu_class.pk].held)
    return request_policy.growth_refusal(facts, kind=line.kind, units=line.asked_units)


def _overcommit(
    found: QuotaRequest, line: LineRow, classes: dict[int, GpuClass], figures: dict[int, ClassFigures], at: datetime
) -> Overcommit | None:
    if line.asked_until <= at:
        return None
    return overcommit_queries.overcommit_of(
        found.tenant_id,
        classes[line.gpu_class_id],
        _as_asked(line, at),
        is_base=line.kind != QuotaLine.Kind.BOOST,
        limit=figures[line.gpu_class_id].limit,
        at=at,
    )


def _curves(
    found: QuotaRequest,
    lines: Sequence[LineRow],
    classes: dict[int, GpuClass],
    figures: dict[int, ClassFigures],
    at: datetime,
) -> list[PromiseCurve]:
    return [
        promise_curve(
            found.tenant_id,
            classes[line.gpu_class_id],
            _as_asked(line, at),
            is_base=line.kind != QuotaLine.Kind.BOOST,
            limit=figures[line.gpu_class_id].limit,
            at=at,
        )
        for line in lines
        if line.asked_until > at
    ]


def _as_asked(line: LineRow, at: datetime) -> Promise:
    """Starts now at the earliest: this is what a late decision would do."""
    return Promise(line.asked_units, max(line.asked_from, at), line.asked_until)
