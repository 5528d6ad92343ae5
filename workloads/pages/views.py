"""Pages of workloads: list, launch, one workload, and its buttons. Parse, call one action, render."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode, urlsplit

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db.models import Exists, OuterRef, QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from accounts.core.actor import Actor
from accounts.core.request_actor import actor
from accounts.events import queries as event_queries
from accounts.rest.paging import page_of
from cluster.reads import queries as mirror
from portal.core.errors import Refusal, get_or_refuse, refuse
from tenants.models import Namespace
from workloads.advice.queries import advice_by_workload
from workloads.advice.shown import advice_view
from workloads.core import policy as core_policy
from workloads.core import queries, workload_sql
from workloads.gateway import actions as gateway_actions
from workloads.gateway import policy
from workloads.launch import actions, custom_images, restartable
from workloads.launch import policy as launch_policy
from workloads.launch import queries as launch_queries
from workloads.launch.form import choices
from workloads.launch.options import Options
from workloads.lifetime.limits import run_limits
from workloads.models import Run, Workload
from workloads.pages import shown
from workloads.runs import policy as run_policy
from workloads.runs import queries as run_queries
from workloads.runs import restart as run_restart
from workloads.status import queries as status_queries
from workloads.status.types import Phase
from workloads.status.workload_row import WorkloadRow
from workloads.storage import queries as storage_queries

PAGE_SIZE = 50
# What higher rooms show on the page of a workload, as context of its template.
ReadRun = Callable[[Actor, core_policy.TeamFacts, Workload, Run | None], dict[str, Any]]
ReadFaults = Callable[[Run | None], dict[str, Any]]


@login_required
@require_GET
def workloads(request: HttpRequest, tenant: str) -> HttpResponse:
    by = actor(request)
    namespace, team = queries.team(by, tenant)
    kind, state, text = (request.GET.get(name, "") for name in ("kind", "state", "q"))
    page = page_of(
        _filtered(queries.visible_workloads(by, tenant), kind, state, text),
        limit=PAGE_SIZE,
        cursor=request.GET.get("cursor"),
    )
    as_of = mirror.as_of(namespace.cluster_id, *status_queries.status_kinds(namespace.cluster))
    rows = status_queries.workload_rows(page.items)
    classes = launch_queries.reachable_classes(namespace)
    context = {
        "tenant": namespace.tenant,
        "rows": [shown.list_row(row) for row in rows],
        "restarts": restartable.restartable_names(by, namespace, team, rows, classes),
        "kind": kind,
        "state": state,
        "q": text,
        "next_cursor": page.next_cursor,
        "may_launch": launch_queries.launch_any_refusal(by, team, classes),
        "openable": {row.workload.name for row in rows if _open_refusal(by, team, row) is None},
        "as_of": as_of.at,
        "is_stale": not as_of.is_current,
    }
    return render(request, "workloads/pages/workloads.html", context)


def _filtered(rows: QuerySet[Workload], kind: str, state: str, text: str) -> QuerySet[Workload]:
    rows = workload_sql.with_related(rows)
    if kind in Workload.Kind.values:
        rows = rows.filter(kind=kind)
    if text:
        rows = rows.filter(name__icontains=text[:40])
    alive = Exists(Run.objects.filter(workload=OuterRef("pk"), ended_at=None))
    if state == "active":
        return rows.filter(alive)
    return rows.filter(~alive) if state == "ended" else rows


@login_required
@require_GET
def workload(
    request: HttpRequest,
    tenant: str,
    name: str,
    read_idle: ReadRun,
    read_faults: ReadFaults,
    read_maintenance: ReadRun,
) -> HttpResponse:
    by = actor(request)
    namespace, team = queries.team(by, tenant)
    row = _row(by, tenant, name)
    found = advice_by_workload(by, namespace, team, [row]).get(name)
    context = {
        "state": shown.workload_state(row),
        "actions": _buttons(by, namespace, team, row),
        "helps": advice_view(name, found, tenant) if found else None,
        "limits": run_limits(by, team, row),
        "runs": [shown.run_line(run, has_log=run.has_log) for run in run_queries.earlier_runs(row)],
        "events": [shown.event_line(event, tenant=tenant) for event in event_queries.events_of_row(row.workload)[:10]],
        "curl": _curl(row),
        **read_idle(by, team, row.workload, row.run),
        **read_faults(row.run),
        **read_maintenance(by, team, row.workload, row.run),
    }
    return render(request, "workloads/pages/workload.html", context)


@login_required
@require_GET
def workload_actions(request: HttpRequest, tenant: str, name: str) -> HttpResponse:
    """The buttons of this user, fetched again when the state changes."""
    by = actor(request)
    namespace, team = queries.team(by, tenant)
    row = _row(by, tenant, name)
    context = {"state": shown.workload_state(row), "actions": _buttons(by, namespace, team, row)}
    return render(request, "workloads/pages/_actions.html", context)


def _row(by: Actor, tenant: str, name: str) -> WorkloadRow:
    found = queries.visible_workload(by, tenant, name)
    return status_queries.workload_rows([found])[0]


def _buttons(
    by: Actor, namespace: Namespace, team: core_policy.TeamFacts, row: WorkloadRow
) -> dict[str, Refusal | choices.ClassTerms | str | bool | None]:
    workload = row.workload
    run = queries.run_facts(workload, row.run)
    start = (
        launch_policy.may_start(by, team, run)
        or _never(by, namespace, workload)
        or storage_queries.attach_refusal(workload.volume, namespace, workload.gpu_class)
    )
    buttons: dict[str, Refusal | choices.ClassTerms | str | bool | None] = {
        "open": _open_refusal(by, team, row),
        "share": policy.may_share(by, team, run, workload.kind),
        "is_private": run.is_private,
        "start": start,
        "terms": None if start else choices.terms_to_accept(by, workload.gpu_class),
        "stop": core_policy.may_stop(by, team, run),
        "restart": run_policy.may_restart(by, team, run),
        "is_stopping": run.is_stopping and not run.is_over,
        "is_followed": row.run is not None and row.run.ended_at is None and row.run.next_wanted_by_id is not None,
        "has_log": "log" in row.status.actions,
        "helps": "change" if "change" in row.status.actions else "",
        "delete": core_policy.may_delete(by, team, run),
        "change": core_policy.may_delete(by, team, run) or core_policy.may_launch_in(by, team),
        "another": core_policy.may_launch_in(by, team) or core_policy.may_add(team),
        "primary": "",
        "goes": shown.deletion_notice(row),
        "ends": shown.stop_notice(row),
    }
    if row.status.phase is Phase.READY:
        buttons["primary"] = "open"
    elif run.is_over:
        buttons["primary"] = "start"
    return buttons


def _open_refusal(by: Actor, team: core_policy.TeamFacts, row: WorkloadRow) -> Refusal | None:
    workload = row.workload
    run = queries.run_facts(workload, row.run)
    return policy.may_open(by, team, run, workload.kind, owner=workload.created_by.name)


def _never(by: Actor, namespace: Namespace, workload: Workload) -> Refusal | None:
    said = Options.from_json(workload.options)
    found = launch_queries.class_facts(namespace, workload.gpu_class, units=workload.units, by=by, said=said)
    never = launch_policy.may_start_on(found, workload.kind, workload.units, said)
    return never or custom_images.custom_image_refusal(workload)


@login_required
@require_POST
def start(request: HttpRequest, tenant: str, name: str) -> HttpResponse:
    """`accept_terms`: the version that the user accepted, where the class requires it."""
    version = request.POST.get("accept_terms", "")
    is_number = version.isascii() and version.isdigit() and len(version) < 10
    actions.start(tenant, name, accept_terms=int(version) if is_number else 0, by=actor(request))
    return redirect("workload", tenant, name)


@login_required
@require_POST
def stop(request: HttpRequest, tenant: str, name: str) -> HttpResponse:
    actions.stop(tenant, name, by=actor(request))
    return redirect("workload", tenant, name)


@login_required
@require_POST
def restart(request: HttpRequest, tenant: str, name: str) -> HttpResponse:
    run_restart.restart(tenant, name, by=actor(request))
    return redirect("workload", tenant, name)


@login_required
@require_POST
def delete(request: HttpRequest, tenant: str, name: str) -> HttpResponse:
    if request.POST.get("confirm", "").strip() != name:
        raise refuse("name_differs", f"Enter '{name}' to confirm the deletion. Nothing was changed.", field="confirm")
    actions.delete(tenant, name, by=actor(request))
    messages.success(request, f"Deletion of {name} was requested.")
    return redirect("workloads", tenant)


@login_required
@require_POST
def open_notebook(request: HttpRequest, tenant: str, name: str) -> HttpResponse:
    """Redirects to the notebook's own origin with a one-time ticket; the token of the notebook is not sent to the
    browser.
    """
    found = gateway_actions.issue_ticket(tenant, name, session_key=request.session.session_key or "", by=actor(request))
    query = urlencode({"ticket": found.secret})
    scheme = urlsplit(settings.PORTAL_URL).scheme
    response = HttpResponseRedirect(f"{scheme}://{found.origin}.{settings.NOTEBOOKS_DOMAIN}/gateway/open?{query}")
    response.status_code = 303
    response["Referrer-Policy"] = "no-referrer"
    response["Cache-Control"] = "no-store"
    return response


@login_required
@require_POST
def visibility(request: HttpRequest, tenant: str, name: str) -> HttpResponse:
    by, chosen = actor(request), request.POST.get("visibility", "")
    queries.visible_workload(by, tenant, name)
    if chosen not in Workload.Visibility.values:
        raise refuse("bad_request", f"Choose {' or '.join(Workload.Visibility.values)}.", field="visibility")
    gateway_actions.set_visibility(tenant, name, chosen, by=by)
    return redirect("workload", tenant, name)


@login_required
@require_GET
def by_origin(request: HttpRequest, origin: str) -> HttpResponse:
    """The address of a notebook without a ticket redirects to its page here, for users who may see it."""
    found = get_or_refuse(Workload.objects.visible_to(actor(request)).select_related("tenant"), origin=origin)
    return redirect("workload", found.tenant.slug, found.name)


@login_required
def served_by_doors(request: HttpRequest, **_parts: str) -> HttpResponse:
    """Streams and logs have names in the URL map; the gateway sends them to the doors process."""
    raise Http404


def _curl(row: WorkloadRow) -> str:
    address = f"{settings.PORTAL_URL}{reverse('api-workload', args=[row.workload.name])}"
    query = urlencode({"team": row.workload.tenant.slug, "wait": 60, "until": "ready"})
    return f"curl -H 'Authorization: Bearer <token>' '{address}?{query}'"
