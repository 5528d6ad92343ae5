"""Pages about adoptions: the list for operators, and one for the people of the team and staff."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from accounts.core.request_actor import actor, operator
from cluster.manifests.adoption.labels import ADOPT_LABEL
from cluster.reads import queries as mirror
from cluster.reads.queries import current_cluster
from desk.adoption.forms import AdoptionForm
from desk.adoption.queries import foreign_namespaces
from desk.adoption.shown import grouped_findings
from operations.adoption import actions, queries
from operations.adoption.findings import is_blocked, losses
from operations.adoption.policy import may_undo, may_withdraw
from operations.models import Adoption
from portal.web.refusals import refusal_in_form
from tenants.models import Namespace

SHOWN_MAX = 200


@login_required
@require_http_methods(["GET", "POST"])
def adoption_list(request: HttpRequest) -> HttpResponse:
    """The query may have values of the form: `namespace`."""
    by, cluster = operator(request), current_cluster()
    form = AdoptionForm(request.POST or None, initial=request.GET.dict())
    if form.is_valid():
        with refusal_in_form(form):
            row = actions.propose_adoption(cluster, **form.values(), by=by)
            messages.success(request, "Proposed. Its owner is told; nothing changes before the owner accepts.")
            return redirect("adoption", row.namespace.tenant.slug)
    rows = list(queries.adoptions_visible_to(by)[:SHOWN_MAX])
    known = {row.namespace.name for row in rows}
    is_current = mirror.as_of(cluster.pk, "Pod").is_current
    others = [one for one in foreign_namespaces(cluster) if one.name not in known] if is_current else None
    context = {"form": form, "rows": rows, "others": others, "shown_max": SHOWN_MAX}
    return render(request, "desk/adoption/adoptions.html", context, status=422 if form.is_bound else 200)


@login_required
@require_GET
def adoption(request: HttpRequest, tenant: str) -> HttpResponse:
    by = actor(request)
    row = queries.adoption_of_team(by, tenant)
    role = queries.role_in(by, row)
    is_accepted = row.state is Adoption.State.ACCEPTED
    missing = losses(row.findings) - {tuple(key) for key in row.accepted} if is_accepted else set()
    is_open = row.state in (Adoption.State.PROPOSED, Adoption.State.ACCEPTED, Adoption.State.UNDONE)
    is_portals = row.namespace.origin == Namespace.Origin.PORTAL
    context = {
        "row": row,
        "namespace": row.namespace,
        "team": row.namespace.tenant,
        "groups": grouped_findings(row.findings),
        "label": ADOPT_LABEL,
        "has_consent": row.consent == row.namespace.tenant.slug,
        "is_blocked": is_blocked(row.findings),
        "has_new_losses": bool(missing),
        "may_accept": role == "owner" and row.read_at is not None and is_open,
        "accepted": [actions.loss_text(key) for key in sorted(losses(row.findings))],
        "may_undo": by.operates and may_undo(row.state, is_portals=is_portals, active_runs=0) is None,
        "may_withdraw": by.operates and may_withdraw(row.state) is None,
    }
    return render(request, "desk/adoption/adoption.html", context)


@login_required
@require_POST
def adoption_accept(request: HttpRequest, tenant: str) -> HttpResponse:
    by = actor(request)
    row = queries.adoption_of_team(by, tenant)
    actions.accept_adoption(row.pk, request.POST.getlist("accepted"), by=by)
    messages.success(request, "Accepted. The worker adopts the namespace within a minute, unless something blocks it.")
    return redirect("adoption", tenant)


@login_required
@require_POST
def adoption_undo(request: HttpRequest, tenant: str) -> HttpResponse:
    by = actor(request)
    row = queries.adoption_of_team(by, tenant)
    actions.undo_adoption(row.pk, by=by)
    messages.success(request, "The worker removes what the portal has put into the namespace.")
    return redirect("adoption", tenant)


@login_required
@require_POST
def adoption_withdraw(request: HttpRequest, tenant: str) -> HttpResponse:
    by = actor(request)
    row = queries.adoption_of_team(by, tenant)
    name = actions.withdraw_adoption(row.pk, by=by).namespace.name_in_cluster
    messages.success(request, f"Withdrawn. The team is closed, and another one may adopt {name}.")
    return redirect("adoptions")
