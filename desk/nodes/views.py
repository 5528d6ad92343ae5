"""Pages about nodes, for staff."""

from __future__ import annotations

from urllib.parse import urlencode

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_POST

from accounts.core.request_actor import operator
from catalog.interconnect.actions import BECAUSE_MAX, OUTPUT_MAX, record_measurement, withdraw_measurement
from catalog.interconnect.queries import measurement_of
from catalog.mig.layout_names import layout_name, named_shares
from catalog.mig.parted import parted_text, shares_of
from cluster.reads import queries as read_queries
from desk.nodes import mig_plan
from desk.nodes import queries as node_queries
from desk.nodes.forms import MeasurementForm, MigDemandForm, WithdrawalForm
from desk.nodes.mig_drawing import planned_cards
from operations.maintenance.queries import open_maintenance
from portal.core.errors import refuse
from usage.faults.shown import node_view, reading_sentence


@login_required
@require_GET
def node_list(request: HttpRequest) -> HttpResponse:
    """For staff; 404 for all other users, like the page of a node."""
    operator(request)
    q, state = request.GET.get("q", "").strip()[:100], request.GET.get("state", "")
    found = node_queries.node_list(read_queries.current_cluster(), q=q, state=state, cursor=request.GET.get("cursor"))
    context = {
        "found": found,
        "next_cursor": found.next_cursor,
        "q": q,
        "state": state,
        "reading": reading_sentence(found.reading),
    }
    return render(request, "desk/nodes/nodes.html", context)


@login_required
@require_GET
def node_page(request: HttpRequest, name: str) -> HttpResponse:
    operator(request)
    cluster = read_queries.current_cluster()
    page = node_queries.node_page(cluster, name)
    context = {
        "page": page,
        "maintenance": open_maintenance(cluster.pk, page.node.name),
        "faults": [node_view(one) for one in page.faults],
        "reading": reading_sentence(page.reading),
        "output_max": OUTPUT_MAX,
        "because_max": BECAUSE_MAX,
    }
    return render(request, "desk/nodes/node.html", context)


@login_required
@require_POST
def measure(request: HttpRequest, name: str) -> HttpResponse:
    """Records an output of nvidia-smi topo -m or all_reduce_perf for the node."""
    by = operator(request)
    form = MeasurementForm(request.POST)
    if not form.is_valid():
        field, errors = next(iter(form.errors.items()))
        raise refuse("invalid", f"{form.fields[field].label}: {errors[0]}", field=field)
    made = record_measurement(read_queries.current_cluster(), name, **form.cleaned_data, by=by)
    said = "; ".join(measurement_of(one).text for one in made)
    messages.success(request, f"Recorded for {name}: {said}.")
    return redirect("node", name)


@login_required
@require_POST
def withdraw(request: HttpRequest, name: str, pk: int) -> HttpResponse:
    """Withdraws one measurement of the node; the one before it counts again."""
    by = operator(request)
    form = WithdrawalForm(request.POST)
    because = form.cleaned_data["because"] if form.is_valid() else ""
    row = withdraw_measurement(read_queries.current_cluster(), name, pk, because=because, by=by)
    messages.success(request, f"Withdrawn for {name}: {measurement_of(row).text}.")
    return redirect("node", name)


@login_required
@require_GET
def mig_plan_page(request: HttpRequest, name: str) -> HttpResponse:
    """A proposal for the MIG layout of a node; changes nothing. Without parameters the demand is what is used on the
    node and what is queued.
    """
    operator(request)
    cluster = read_queries.current_cluster()
    page = node_queries.node_page(cluster, name)
    found = mig_plan.partitionable(page.node)
    context: dict[str, object] = {"page": page}
    if isinstance(found, str):
        return render(request, "desk/nodes/mig_plan.html", context | {"refusal": found})
    lines = mig_plan.demand_on(cluster, found, page.node.labels, page.devices)
    proposed = {line.profile: line.proposed for line in lines} | {"strategy": found.strategy}
    form = MigDemandForm(proposed | request.GET.dict(), lines=lines)
    context |= {"gpus": found, "form": form, "lines": [(line, form[line.profile]) for line in lines]}
    if form.is_valid():
        demand = form.demand()
        plan = mig_plan.plan_for(found, demand, form.cleaned_data["strategy"])
        shares = shares_of(plan.layouts)
        config = layout_name(shares)
        place = settings.MIG_LAYOUTS_CONFIG_MAP if named_shares(config) is not None else None
        devices = mig_plan.devices_after(found, plan, form.cleaned_data["strategy"])
        context |= {
            "plan": plan,
            "drawn": planned_cards(found.card, plan),
            "demand": sum(demand.values()),
            "served_now": mig_plan.served_now(found, demand),
            "changes": mig_plan.changes(found, plan),
            "unchanged": found.gpus - sum(number for _layout, number in plan.layouts),
            "parted": parted_text(config, shares),
            "config_map": "/".join(place or ()),
            "commands": mig_plan.commands(name, config),
            "maintenance": _maintenance_query(name, config, devices),
        }
    return render(request, "desk/nodes/mig_plan.html", context)


def _maintenance_query(node: str, config: str, devices: dict[str, int]) -> str:
    """Values for the form of a maintenance, as a query; "" without any devices to verify."""
    expected = " ".join(f"{name}={number}" for name, number in devices.items())
    values = {"nodes": node, "kind": "repartition", "mig_config": config, "expected": expected}
    return urlencode(values) if devices else ""
