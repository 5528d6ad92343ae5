"""Pages on which a team requests quota."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from accounts.core.request_actor import actor
from accounts.rest.paging import page_of
from catalog.classes import queries as catalog
from catalog.classes.capacity import queries as capacity_queries
from catalog.models import GpuClass
from cluster.models import Cluster
from cluster.reads import queries as read_queries
from portal.core.errors import get_or_refuse, refuse_if
from portal.ui.text import plural
from portal.web.refusals import refusal_in_form
from tenants.class_access import queries as class_access_queries
from tenants.core import queries as core_queries
from tenants.core.forms import end_of_day, start_of_day
from tenants.grants import queries as grant_queries
from tenants.grants.overcommit.queries import promised_of
from tenants.grants.queries import RequestableClass
from tenants.grants.types import ClassFacts
from tenants.members import queries
from tenants.models import QuotaLine, Tenant
from tenants.requests import actions, draft, policy, shown
from tenants.requests import queries as request_queries
from tenants.requests.forms import RequestForm, TypedLine, default_period, read_period, read_typed_lines
from tenants.requests.types import RequestedLine
from tenants.requests.usage_evidence import MeasureUsage

PAGE_SIZE = 25
KINDS = ((QuotaLine.Kind.BASE, "New total"), (QuotaLine.Kind.BOOST, "Temporary increase"))
SENT = "Your request was submitted. Approvers are notified."
DONE_BY_RULE = "A rule approved your request automatically."
# Units of the temporary increase in the example beside the field.
BOOST_EXAMPLE = 2


# ---- creating and withdrawing requests ---------------------------------------------------------------------------


@login_required
@require_GET
def request_list(request: HttpRequest, tenant: str) -> HttpResponse:
    by = actor(request)
    team = get_or_refuse(Tenant.objects.visible_to(by), slug=tenant)
    state = request.GET.get("state", "")
    page = page_of(
        request_queries.requests_for(by, tenant=tenant, state=state), limit=PAGE_SIZE, cursor=request.GET.get("cursor")
    )
    rows = request_queries.request_rows(page.items, by=by)
    context = {
        "tenant": team,
        "requests": [shown.request_row(row) for row in rows],
        "state": state,
        "next_cursor": page.next_cursor,
        "may_request": policy.may_file(by, queries.standing_of(by, team)),
    }
    return render(request, "tenants/requests/requests.html", context)


@login_required
@require_http_methods(["GET", "POST"])
def request_new(request: HttpRequest, tenant: str, measure: MeasureUsage) -> HttpResponse:
    """`?class=` and `?units-<slug>=` open lines; without one, a class is chosen first. With `look`, nothing is sent:
    the page is rendered again with what was entered, and one line more or less.
    """
    by = actor(request)
    team = get_or_refuse(Tenant.objects.visible_to(by), slug=tenant)
    refuse_if(policy.may_file(by, queries.standing_of(by, team)))
    cluster = read_queries.current_cluster()
    classes = list(class_access_queries.visible_classes(by, cluster).select_related("successor"))
    values, look = request.POST.dict() or draft.from_link(request.GET.dict()), request.POST.get("look", "")
    form = RequestForm(None if look else request.POST or None, initial={**default_period(), **values})
    opened = [one for one in classes if draft.has_line(values, one.slug, look)]
    typed, errors = read_typed_lines(values, [one.slug for one in opened])
    if form.is_bound and form.is_valid() and not errors:
        lines = [_asked(line, form.cleaned_data["from_date"], form.cleaned_data["until_date"]) for line in typed]
        form.name_lines([line.gpu_class for line in lines])
        with refusal_in_form(form):
            filed = actions.file_request(
                tenant, lines=lines, justification=form.cleaned_data["justification"], by=by, measure=measure
            )
            is_pending = filed.lines.filter(state=QuotaLine.State.PENDING).exists()
            messages.success(request, SENT if is_pending else DONE_BY_RULE)
            return redirect("request", filed.pk)
        errors = form.line_errors()
    facts = grant_queries.class_facts(team, [one.slug for one in classes], at=core_queries.database_now())
    lines = [_asked(line, *read_period(values)) for line in typed]
    shown_classes = [one for one in opened if one.slug in facts]
    is_first = request.method == "GET" and not shown_classes
    context = {
        "tenant": team,
        "rows": _class_rows(
            team, cluster, shown_classes, classes, facts, values, lines, errors if form.is_bound else {}
        ),
        "choices": [_choice(one, facts[one.slug].facts) for one in classes if one not in opened and one.slug in facts],
        "unknown": values.get("class", "")[:60] if is_first else "",
        "is_first": is_first,
        "kinds": KINDS,
        "boost": BOOST_EXAMPLE,
        "form": form,
    }
    return render(request, "tenants/requests/request_new.html", context, status=422 if form.is_bound else 200)


@login_required
@require_POST
def request_withdraw(request: HttpRequest, pk: int) -> HttpResponse:
    actions.withdraw_request(pk, by=actor(request))
    messages.success(request, "All pending lines were withdrawn.")
    return redirect("request", pk)


def _asked(line: TypedLine, from_date: date, until_date: date) -> RequestedLine:
    return RequestedLine(
        gpu_class=line.gpu_class,
        units=line.units,
        starts=max(start_of_day(line.from_date or from_date), timezone.now()),
        ends=end_of_day(line.until_date or until_date),
        kind=line.kind,
    )


def _choice(one: GpuClass, facts: ClassFacts) -> dict[str, Any]:
    now = f"now {plural(facts.held, catalog.unit_of(one))}"
    return {"slug": one.slug, "name": one.name, "note": now, "is_off": policy.class_refusal(facts) is not None}


def _class_rows(
    team: Tenant,
    cluster: Cluster,
    opened: list[GpuClass],
    classes: list[GpuClass],
    facts: Mapping[str, RequestableClass],
    typed: Mapping[str, str],
    lines: list[RequestedLine],
    errors: Mapping[str, str],
) -> list[dict[str, Any]]:
    """`opened`: the classes that have a line, all in `facts`; `classes`: all that the person may see. About ten
    queries, none without a line.
    """
    if not opened:
        return []
    capacity = capacity_queries.capacities(cluster, opened)
    promised = promised_of(team.pk, [one.pk for one in opened], at=core_queries.database_now())
    names, asked = {one.pk: one.name for one in classes}, {line.gpu_class: line for line in lines}
    return [
        {
            "slug": one.slug,
            "name": one.name,
            "note": shown.class_note(one, capacity[one.pk], promised.steps[one.pk][0].units),
            "told": catalog.status_notice(one, names),
            "unit": catalog.unit_of(one),
            "held": (known := facts[one.slug].facts).held,
            "value": typed.get(f"units-{one.slug}", ""),
            "kind": typed.get(f"kind-{one.slug}") or QuotaLine.Kind.BASE,
            "from_value": typed.get(f"from-{one.slug}", ""),
            "until_value": typed.get(f"until-{one.slug}", ""),
            "boosted": known.held + BOOST_EXAMPLE,
            "error": errors.get(one.slug, ""),
            "refusal": policy.class_refusal(known),
            "preview": draft.line_preview(
                one, line, policy.line_refusal(line, known, now=promised.at), promised, capacity[one.pk]
            )
            if (line := asked.get(one.slug))
            else None,
        }
        for one in opened
    ]
