"""Pages of workloads: list, launch, one workload, and its buttons. Parse, call one word, render."""

from __future__ import annotations

from urllib.parse import urlencode, urlsplit

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db.models import Exists, OuterRef, QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from accounts import queries as accounts
from accounts.actor import Actor
from accounts.edge import actor
from accounts.paging import page_of
from cluster import queries as mirror
from portal.errors import Refusal, get_or_refuse, refuse
from tenants.models import Namespace
from workloads import actions, following, policy, queries, shown
from workloads.giving_back import giving_back
from workloads.models import Run, Workload
from workloads.next_steps_shown import helps
from workloads.options import Options
from workloads.phase import Phase
from workloads.queries import WorkloadRow, launching, offers, own_images, relaunching, volumes
from workloads.queries.helping import advices

PAGE_SIZE = 50


@login_required
@require_GET
def workloads(request: HttpRequest, tenant: str) -> HttpResponse:
    by = actor(request)
    namespace, team = queries.team(by, tenant)
    kind, state, text = (request.GET.get(name, "") for name in ("kind", "state", "q"))
    page = page_of(
        _filtered(queries.of_tenant(by, tenant), kind, state, text),
        limit=PAGE_SIZE,
        cursor=request.GET.get("cursor"),
    )
    as_of = mirror.as_of(namespace.cluster_id, *queries.kinds_shown(namespace.cluster))
    rows = queries.rows(page.items)
    context = {
        "tenant": namespace.tenant,
        "rows": [shown.list_row(row) for row in rows],
        "restarts": relaunching.at_once(by, namespace, team, rows),
        "kind": kind,
        "state": state,
        "q": text,
        "next_cursor": page.next_cursor,
        "may_launch": launching.may_launch_any(by, namespace, team),
        "may_open": policy.may_open_any(team),
        "as_of": as_of.at,
        "is_stale": not as_of.is_current,
    }
    return render(request, "workloads/workloads.html", context)


def _filtered(rows: QuerySet[Workload], kind: str, state: str, text: str) -> QuerySet[Workload]:
    rows = queries.with_names(rows)
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
def workload(request: HttpRequest, tenant: str, name: str) -> HttpResponse:
    by = actor(request)
    namespace, team = queries.team(by, tenant)
    row = _row(by, tenant, name)
    found = advices(by, namespace, team, [row]).get(name)
    context = {
        "state": shown.workload_state(row),
        "actions": _buttons(by, namespace, team, row),
        "helps": helps(name, found, tenant) if found else None,
        "giving_back": giving_back(by, team, row),
        "spec": shown.definitions(row),
        "runs": [shown.run_line(run) for run in queries.earlier_runs(row)],
        "events": [shown.event_line(event, tenant=tenant) for event in accounts.events_of_row(row.workload)[:10]],
        "curl": _curl(row),
    }
    return render(request, "workloads/workload.html", context)


@login_required
@require_GET
def workload_actions(request: HttpRequest, tenant: str, name: str) -> HttpResponse:
    """The buttons of this person, fetched again whenever the state changes."""
    by = actor(request)
    namespace, team = queries.team(by, tenant)
    row = _row(by, tenant, name)
    context = {"state": shown.workload_state(row), "actions": _buttons(by, namespace, team, row)}
    return render(request, "workloads/_actions.html", context)


def _row(by: Actor, tenant: str, name: str) -> WorkloadRow:
    found = queries.named(by, tenant, name)
    return queries.rows([found])[0]


def _buttons(
    by: Actor, namespace: Namespace, team: policy.TeamFacts, row: WorkloadRow
) -> dict[str, Refusal | offers.Terms | str | bool | None]:
    workload = row.workload
    run = queries.run_facts(workload, row.run)
    start = policy.may_start(by, team, run) or _never(by, namespace, workload) or volumes.may_take(workload.volume)
    buttons: dict[str, Refusal | offers.Terms | str | bool | None] = {
        "open": policy.may_open(by, team, run, workload.kind),
        "start": start,
        "terms": None if start else offers.terms_to_accept(by, workload.gpu_class),
        "stop": policy.may_stop(by, team, run),
        "restart": policy.may_restart(by, team, run),
        "is_stopping": run.is_stopping and not run.is_over,
        "is_followed": row.run is not None and row.run.ended_at is None and row.run.next_wanted_by_id is not None,
        "has_log": "log" in row.status.actions,
        "helps": "change" if "change" in row.status.actions else "",
        "delete": policy.may_delete(by, team, run),
        "change": policy.may_delete(by, team, run) or policy.may_launch_in(by, team),
        "another": policy.may_launch_in(by, team) or policy.may_add(team),
        "primary": "",
        "goes": shown.deletion(row),
    }
    if row.status.phase is Phase.READY:
        buttons["primary"] = "open"
    elif run.is_over:
        buttons["primary"] = "start"
    return buttons


def _never(by: Actor, namespace: Namespace, workload: Workload) -> Refusal | None:
    found = queries.class_facts(namespace, workload.gpu_class, units=workload.units, by=by)
    never = policy.may_start_on(found, workload.kind, workload.units, Options.from_json(workload.options))
    return never or own_images.may_start(workload)


@login_required
@require_POST
def start(request: HttpRequest, tenant: str, name: str) -> HttpResponse:
    """`accept_terms`: the version that the person ticked, where the class asks for it."""
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
    following.restart(tenant, name, by=actor(request))
    return redirect("workload", tenant, name)


@login_required
@require_POST
def delete(request: HttpRequest, tenant: str, name: str) -> HttpResponse:
    if request.POST.get("confirm", "").strip() != name:
        raise refuse("name_differs", f"Type '{name}' to delete it; nothing was changed.", field="confirm")
    actions.delete(tenant, name, by=actor(request))
    messages.success(request, f"{name} is being deleted.")
    return redirect("workloads", tenant)


@login_required
@require_POST
def open_notebook(request: HttpRequest, tenant: str, name: str) -> HttpResponse:
    """To the notebook's own origin, with a pass that works once; the token of the notebook itself stays inside."""
    found = actions.issue_ticket(tenant, name, session_key=request.session.session_key or "", by=actor(request))
    query = urlencode({"ticket": found.secret})
    scheme = urlsplit(settings.PORTAL_URL).scheme
    response = HttpResponseRedirect(f"{scheme}://{found.origin}.{settings.NOTEBOOKS_DOMAIN}/gateway/open?{query}")
    response.status_code = 303
    response["Referrer-Policy"] = "no-referrer"
    response["Cache-Control"] = "no-store"
    return response


@login_required
@require_GET
def by_origin(request: HttpRequest, origin: str) -> HttpResponse:
    """Where a notebook's address leads without a pass: to its page here, for those who may know it."""
    found = get_or_refuse(Workload.objects.visible_to(actor(request)).select_related("tenant"), origin=origin)
    return redirect("workload", found.tenant.slug, found.name)


@login_required
def served_by_doors(request: HttpRequest, **_parts: str) -> HttpResponse:
    """Streams and logs have names in the URL map; the gateway sends them to the doors process."""
    raise Http404


def _curl(row: WorkloadRow) -> str:
    address = f"{settings.PORTAL_URL}{reverse('api-workload', args=[row.workload.name])}"
    query = urlencode({"tenant": row.workload.tenant.slug, "wait": 60, "until": "ready"})
    return f"curl -H 'Authorization: Bearer <token>' '{address}?{query}'"
