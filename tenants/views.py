"""Pages about quota: asking for it, and one request."""

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
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from accounts import queries as accounts
from accounts.actor import Actor
from accounts.edge import actor
from accounts.paging import page_of
from catalog import queries as catalog
from catalog.models import GpuClass
from cluster.models import Cluster
from portal.errors import Refusal, get_or_refuse, refusal_beside, refuse_if
from tenants import actions, line_policy, policy, presence, queries, shown, thread
from tenants.decisions import Decision, OverPromise
from tenants.forms import (
    CommentForm,
    DecisionForm,
    LineTyped,
    RequestForm,
    end_of,
    lines_typed,
    start_of,
    usual_period,
)
from tenants.measured import Measure
from tenants.models import Plan, QuotaLine, QuotaRequest, Tenant
from tenants.policy import Asked, Excess
from tenants.promises import Promise
from tenants.queries import Figures, requests
from tenants.queries.asks import asked_before, classes_of
from tenants.queries.curves import PromiseCurve, promise_curve
from tenants.queries.requests import LineRow

PAGE_SIZE = 25
KINDS = ((QuotaLine.Kind.BASE, "New total"), (QuotaLine.Kind.BOOST, "Boost on top"))
SENT = "Your request was sent; approvers are told."
DONE_BY_RULE = "Done: a rule decided it at once."
# Units of the boost in the example beside the field.
BOOST_EXAMPLE = 2


# ---- asking ------------------------------------------------------------------------------------------------------


@login_required
@require_GET
def request_list(request: HttpRequest, tenant: str) -> HttpResponse:
    by = actor(request)
    team = get_or_refuse(Tenant.objects.visible_to(by), slug=tenant)
    state = request.GET.get("state", "")
    page = page_of(
        requests.requests_for(by, tenant=tenant, state=state), limit=PAGE_SIZE, cursor=request.GET.get("cursor")
    )
    rows = requests.request_rows(page.items, by=by)
    context = {
        "tenant": team,
        "requests": [shown.request_row(row) for row in rows],
        "state": state,
        "next_cursor": page.next_cursor,
        "may_request": policy.may_file(by, queries.standing(by, team)),
    }
    return render(request, "tenants/requests.html", context)


@login_required
@require_http_methods(["GET", "POST"])
def request_new(request: HttpRequest, tenant: str, measure: Measure) -> HttpResponse:
    """`?units-<slug>=` fills the form."""
    by = actor(request)
    team = get_or_refuse(Tenant.objects.visible_to(by), slug=tenant)
    refuse_if(policy.may_file(by, queries.standing(by, team)))
    cluster = catalog.cluster()
    classes = list(queries.visible_classes(by, cluster).select_related("successor"))
    form = RequestForm(request.POST or None, initial=usual_period())
    errors: dict[str, str] = {}
    if request.method == "POST":
        typed, errors = lines_typed(request.POST.dict(), [one.slug for one in classes])
        if form.is_valid() and not errors:
            lines = [_asked(line, form) for line in typed]
            form.name_lines([line.gpu_class for line in lines])
            with refusal_beside(form):
                filed = actions.file_request(
                    tenant, lines=lines, justification=form.cleaned_data["justification"], by=by, measure=measure
                )
                is_pending = filed.lines.filter(state=QuotaLine.State.PENDING).exists()
                messages.success(request, SENT if is_pending else DONE_BY_RULE)
                return redirect("request", filed.pk)
            errors = form.line_errors()
    status = 422 if form.is_bound else 200
    context = {
        "tenant": team,
        "rows": _class_rows(team, cluster, classes, request.POST or request.GET, errors),
        "kinds": KINDS,
        "boost": BOOST_EXAMPLE,
        "form": form,
    }
    return render(request, "tenants/request_new.html", context, status=status)


@login_required
@require_POST
def request_withdraw(request: HttpRequest, pk: int) -> HttpResponse:
    actions.withdraw(pk, by=actor(request))
    messages.success(request, "What was pending is withdrawn.")
    return redirect("request", pk)


def _asked(line: LineTyped, form: RequestForm) -> Asked:
    starts = start_of(line.from_date or form.cleaned_data["from_date"])
    return Asked(
        gpu_class=line.gpu_class,
        units=line.units,
        starts=max(starts, timezone.now()),
        ends=end_of(line.until_date or form.cleaned_data["until_date"]),
        kind=line.kind,
    )


def _class_rows(
    team: Tenant, cluster: Cluster, classes: list[GpuClass], typed: Mapping[str, str], errors: dict[str, str]
) -> list[dict[str, Any]]:
    """Of `classes`, which are all that the person may know of."""
    at = queries.now()
    facts = {slug: one.facts for slug, one in queries.class_facts(team, [one.slug for one in classes], at=at).items()}
    capacity = catalog.capacities(cluster, classes)
    promised = queries.promised_units(cluster, at)
    names = {one.pk: one.name for one in classes}
    return [
        {
            "slug": one.slug,
            "name": one.name,
            "note": shown.class_note(one, capacity[one.pk], promised.get(one.pk, 0)),
            "told": catalog.told(one, names),
            "unit": catalog.unit_of(one),
            "held": facts[one.slug].held,
            "value": typed.get(f"units-{one.slug}", ""),
            "kind": typed.get(f"kind-{one.slug}") or QuotaLine.Kind.BASE,
            "from_value": typed.get(f"from-{one.slug}", ""),
            "until_value": typed.get(f"until-{one.slug}", ""),
            "boosted": facts[one.slug].held + BOOST_EXAMPLE,
            "error": errors.get(one.slug, ""),
            "refusal": policy.class_refusal(facts[one.slug]),
        }
        for one in classes
        if one.slug in facts
    ]


# ---- one request -------------------------------------------------------------------------------------------------


@login_required
@require_GET
def request_page(request: HttpRequest, pk: int, measure: Measure) -> HttpResponse:
    by = actor(request)
    found = get_or_refuse(QuotaRequest.objects.visible_to(by).select_related("tenant"), pk=pk)
    context = _request_context(found, by, measure)
    if context["page"]["to_decide"]:
        presence.open_request(pk, by.person)
    return render(request, "tenants/request.html", context)


@login_required
@require_POST
def request_decide(request: HttpRequest, pk: int, measure: Measure) -> HttpResponse:
    """All pending lines of this person's classes at once, each with the units and dates in the form."""
    by = actor(request)
    found = get_or_refuse(QuotaRequest.objects.visible_to(by).select_related("tenant"), pk=pk)
    row = requests.request_rows([found], by=by)[0]
    if not row.to_decide:
        refuse_if(row.refusal or row.lines[0].refusal)
    form = DecisionForm(request.POST, lines=row.to_decide)
    if form.is_valid():
        typed = form.cleaned_data
        measured = measure(found.tenant, classes_of(found)).plain
        with refusal_beside(form):
            actions.decide(
                pk,
                [_decision(line, typed, measured[line.gpu_class_id]) for line in row.to_decide],
                by=by,
                over_promise=OverPromise(typed["over_promise"], typed["reason"]),
            )
            messages.success(request, f"Decided; {found.filed_by.name} is told.")
            return redirect("request", pk)
    return render(request, "tenants/request.html", _request_context(found, by, measure, form=form), status=422)


@login_required
@require_POST
def request_comment(request: HttpRequest, pk: int, measure: Measure) -> HttpResponse:
    by = actor(request)
    found = get_or_refuse(QuotaRequest.objects.visible_to(by).select_related("tenant"), pk=pk)
    form = CommentForm(request.POST)
    if form.is_valid():
        with refusal_beside(form):
            actions.comment_request(pk, by=by, **form.cleaned_data)
            return redirect(f"{reverse('request', args=[pk])}#thread")
    context = _request_context(found, by, measure, comment_form=form)
    return render(request, "tenants/request.html", context, status=422)


def _decision(line: LineRow, typed: dict[str, Any], measured: Mapping[str, Any]) -> Decision:
    """A date that was left as it stands keeps the moment that was asked for."""
    from_date, until_date = typed[f"from-{line.pk}"], typed[f"until-{line.pk}"]
    return Decision(
        line_id=line.pk,
        approve=typed["decision"] == "approve",
        units=typed[f"units-{line.pk}"],
        starts=None if from_date == timezone.localdate(line.asked_from) else start_of(from_date),
        ends=None if until_date == timezone.localdate(line.asked_until) else end_of(until_date),
        grace_hours=typed[f"grace-{line.pk}"],
        reason=typed["reason"],
        measured=measured,
    )


def _request_context(
    found: QuotaRequest,
    by: Actor,
    measure: Measure,
    *,
    form: DecisionForm | None = None,
    comment_form: CommentForm | None = None,
) -> dict[str, Any]:
    row = requests.request_rows([found], by=by)[0]
    at = queries.now()
    classes = {one.pk: one for one in classes_of(found)}
    figures = queries.figures(found.tenant, list(classes.values()), at=at)
    excesses = {line.pk: _excess(found, line, classes, figures, at) for line in row.pending}
    errors = form.line_errors() if form else {}
    mine = queries.rights(by)
    show_decide = bool(mine) and queries.standing(by, found.tenant).role == ""
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
            shown.line(
                line,
                number=number,
                problem=shown.problem(
                    excesses.get(line.pk), _growth(line, classes, figures), is_over=line.asked_until <= at
                ),
                error=errors.get(line.pk, ""),
                typed=form.data if form else {},
            )
            for number, line in enumerate(row.lines, start=1)
        ],
        "curves": _curves(found, row.pending, classes, figures, at) if show_decide else [],
        "facts": shown.facts(row.lines, figures, measure(found.tenant, classes.values())) if show_decide else None,
        "asks": [shown.ask(one) for one in asked_before(found.tenant_id, classes, request_id=found.pk)]
        if show_decide
        else [],
        "over_promised": " ".join(
            shown.over_promised(excess) for line in row.to_decide if (excess := excesses[line.pk])
        ),
        "plan": shown.plan(plan.objects_planned, made_at=plan.made_at, error=plan.error_text)
        if plan and (row.pending or plan.made_at)
        else None,
        "events": [shown.event(event) for event in accounts.events_of_row(found)[:20]],
    }
    return {
        "page": page,
        "form": form,
        "comments": thread.comments(found),
        "comment_form": comment_form or CommentForm(),
        "open_by": presence.open_by_others([row.pk], by.person).get(row.pk, ()) if show_decide and row.pending else (),
        "may_comment": thread.may_comment(by, found),
        "may_ask_back": show_decide and thread.may_comment(by, found, asks_back=True) is None,
        "show_decide": show_decide,
        "may_decide": row.refusal,
        "may_withdraw": policy.may_withdraw(
            by, queries.standing(by, found.tenant), filed_by=found.filed_by_id, is_reclaim=row.is_reclaim
        ),
        "may_reclaim": line_policy.may_reclaim(by, queries.standing(by, found.tenant)),
    }


def _growth(line: LineRow, classes: dict[int, GpuClass], figures: dict[int, Figures]) -> Refusal | None:
    gpu_class = classes[line.gpu_class_id]
    facts = policy.ClassFacts(line.slug, line.name, gpu_class.life_cycle, figures[gpu_class.pk].held)
    return policy.growth_refusal(facts, kind=line.kind, units=line.asked_units)


def _excess(
    found: QuotaRequest, line: LineRow, classes: dict[int, GpuClass], figures: dict[int, Figures], at: datetime
) -> Excess | None:
    if line.asked_until <= at:
        return None
    return queries.excess_of(
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
    figures: dict[int, Figures],
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
    """From now on: what a late decision would do."""
    return Promise(line.asked_units, max(line.asked_from, at), line.asked_until)
