"""The page that plans MIG layouts for several nodes, for staff. It changes nothing."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from accounts.core.request_actor import operator
from catalog.mig.sets.types import SetPlan
from cluster.reads import queries as read_queries
from desk.nodes.mig_sets import queries, shown
from desk.nodes.mig_sets.forms import WantedForm
from desk.nodes.mig_sets.policy import nodes_refusal
from desk.nodes.mig_sets.types import Proposal, SetMaintenance
from operations.maintenance.policy import NODES_MOST


@login_required
@require_GET
def mig_set_page(request: HttpRequest) -> HttpResponse:
    """`set`: which, by default the first; `nodes`: some of its nodes, by default all; then numbers by profile, by
    default what is proposed.
    """
    operator(request)
    cluster = read_queries.current_cluster()
    sets = queries.mig_sets(cluster)
    chosen = next((one for one in sets if one.key == request.GET.get("set")), sets[0] if sets else None)
    context: dict[str, Any] = {"sets": sets, "chosen": chosen, "as_of": read_queries.as_of(cluster.pk, "Node", "Pod")}
    if chosen is None:
        return render(request, "desk/nodes/mig_sets/plan.html", context)
    asked = set(request.GET.getlist("nodes"))
    names = [name for name in chosen.names if name in asked] or list(chosen.names)
    context |= {"names": names, "is_all": len(names) == len(chosen.names), "most": NODES_MOST}
    if refusal := nodes_refusal(names):
        return render(request, "desk/nodes/mig_sets/plan.html", context | {"too_many": refusal.message})
    lines = queries.demand_of(cluster, chosen, names)
    proposed = {line.profile: line.proposed for line in lines}
    form = WantedForm(proposed | request.GET.dict(), lines=lines)
    context |= {"form": form, "lines": [(line, form[line.profile]) for line in lines]}
    if names and form.is_valid():
        keeps_grants = not form.cleaned_data["ignores_grants"]
        found = queries.proposal(cluster, chosen, names, lines, form.wanted(), keeps_grants=keeps_grants)
        context |= _proposal(found)
    return render(request, "desk/nodes/mig_sets/plan.html", context)


def _proposal(found: Proposal) -> dict[str, Any]:
    plan = found.plan
    return {
        "found": found,
        "plan": plan,
        "wanted": sum(plan.need.wanted.values()),
        "served": plan.served.total(),
        "served_now": plan.served_now.total(),
        "sums": [(label, shown.listed(counts) or "nothing") for label, counts in _sums(plan)],
        "nodes": [
            (one.node, shown.listed(one.node.offers), shown.node_text(one), one.is_changed) for one in plan.nodes
        ],
        "broken": [(one, shown.broken_sentence(one)) for one in found.broken],
        "steps": [_step(one) for one in found.steps],
    }


def _sums(plan: SetPlan) -> list[tuple[str, dict[str, int]]]:
    return [
        ("Served", dict(plan.served)),
        ("Not served", dict(plan.unserved)),
        ("Not asked for by anybody", dict(plan.spare)),
    ]


def _step(step: SetMaintenance) -> dict[str, Any]:
    place = settings.MIG_LAYOUTS_CONFIG_MAP if step.is_named else None
    return {
        "step": step,
        "layout": shown.layout_text(step.groups),
        "short": shown.short_sentence(step),
        "query": shown.maintenance_query(step),
        "config_map": "/".join(place or ()),
    }
