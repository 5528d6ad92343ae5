"""Pages about maintenance, for operators; 404 for all other users."""

from __future__ import annotations

from datetime import timedelta

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from accounts.core.request_actor import operator
from cluster.reads.queries import current_cluster
from desk.maintenance.forms import MaintenanceForm
from desk.maintenance.preview import preview
from operations.maintenance import actions
from operations.maintenance.steps import ORDER, Step
from operations.models import Maintenance
from portal.core.errors import get_or_refuse
from portal.web.refusals import refusal_in_form

SHOWN_MAX = 50
CONTROLS = {
    "confirm": (actions.confirm_maintenance, "The worker verifies the nodes and opens them."),
    "cancel": (actions.cancel_maintenance, "Canceled: nodes that were changed get their configuration of before."),
    "release": (actions.release_maintenance, "The nodes are opened as they are."),
}


@login_required
@require_GET
def maintenance_list(request: HttpRequest) -> HttpResponse:
    operator(request)
    rows = Maintenance.objects.prefetch_related("nodes").select_related("created_by")[:SHOWN_MAX]
    context = {"open": [row for row in rows if not row.ended_at], "ended": [row for row in rows if row.ended_at]}
    return render(request, "desk/maintenance/maintenances.html", context | {"shown_max": SHOWN_MAX})


@login_required
@require_http_methods(["GET", "POST"])
def maintenance_new(request: HttpRequest) -> HttpResponse:
    """The query may have values of the form: `nodes`, `kind`, `mig_config`, …. The preview is of these nodes."""
    by, cluster = operator(request), current_cluster()
    now = timezone.localtime().replace(second=0, microsecond=0)
    window = {"holds_from": now, "starts_at": now + timedelta(hours=24), "ends_at": now + timedelta(hours=26)}
    form = MaintenanceForm(
        request.POST or None,
        cluster=cluster,
        initial=window | request.GET.dict() | {"nodes": request.GET.getlist("nodes")},
    )
    if form.is_valid():
        with refusal_in_form(form):
            values = form.values()
            row = actions.plan_maintenance(cluster, values.pop("nodes"), **values, by=by)
            messages.success(request, "Maintenance planned. Everybody who runs on the nodes is told.")
            return redirect("maintenance", row.pk)
    known = {name for name, _label in form.fields["nodes"].choices}  # type: ignore[attr-defined]
    chosen = [name for name in (form["nodes"].value() or ()) if name in known]
    plan = Maintenance(
        cluster=cluster, starts_at=(form.cleaned_data if form.is_bound else {}).get("starts_at", window["starts_at"])
    )
    context = {"form": form, "chosen": chosen, "preview": preview(cluster, plan, chosen) if chosen else None}
    return render(request, "desk/maintenance/new.html", context, status=422 if form.is_bound else 200)


@login_required
@require_GET
def maintenance_page(request: HttpRequest, pk: int) -> HttpResponse:
    operator(request)
    row = get_or_refuse(Maintenance.objects.select_related("created_by", "cluster"), pk=pk)
    nodes = list(row.nodes.all())
    is_open = row.ended_at is None
    told = row.notices.select_related("run__workload__tenant").order_by("told_at", "pk")
    context = {
        "row": row,
        "nodes": [(node, ORDER.index(Step(node.step))) for node in nodes],
        "steps": ORDER,
        "told": told,
        "preview": preview(row.cluster, row, [node.name for node in nodes]) if is_open else None,
        "is_closed": any(node.step not in (Step.PLANNED, Step.DONE) for node in nodes),
        "may_confirm": is_open and row.is_by_hand and row.confirmed_at is None,
        "may_cancel": is_open and row.cancel_requested_at is None,
        "may_release": is_open and row.release_requested_at is None and any(n.step != Step.PLANNED for n in nodes),
    }
    return render(request, "desk/maintenance/maintenance.html", context)


@login_required
@require_POST
def maintenance_control(request: HttpRequest, pk: int, control: str) -> HttpResponse:
    act, said = CONTROLS[control]
    act(pk, by=operator(request))
    messages.success(request, said)
    return redirect("maintenance", pk)
