"""The page Queue for staff: queued runs and what blocks them; pause and resume of a class and of a team."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_POST

from accounts.core.request_actor import operator, staff
from catalog.classes import actions as catalog_actions
from catalog.models import GpuClass
from cluster.manifests.run_spec import PRIORITIES
from cluster.reads import queries as read_queries
from desk.queue import queries
from desk.queue.forms import HoldForm
from desk.queue.queries import QueueFilter
from portal.core.errors import get_or_refuse, refuse
from tenants.lifecycle import actions as lifecycle_actions
from tenants.lifecycle import policy as lifecycle_policy
from tenants.models import Namespace
from workloads.runs.priority import actions as priority_actions


@login_required
@require_GET
def queue(request: HttpRequest) -> HttpResponse:
    """For operators, administrators and auditors; 404 for all other users. So are the views below."""
    by = staff(request)
    asked = request.GET
    chosen = QueueFilter(asked.get("class", "")[:60], asked.get("team", "")[:60], asked.get("reason", "")[:60])
    found = queries.read_queue(read_queries.current_cluster(), chosen, cursor=asked.get("cursor"))
    context = {
        "queue": found,
        "chosen": chosen,
        "is_filtered": any((chosen.gpu_class, chosen.team, chosen.reason)),
        "reasons": queries.reason_counts(read_queries.current_cluster(), chosen),
        "may_operate": by.operates,
        "priorities": PRIORITIES,
        "next_cursor": found.next_cursor,
    }
    return render(request, "desk/queue/queue.html", context)


@login_required
@require_POST
def queue_class(request: HttpRequest, slug: str) -> HttpResponse:
    """Pause scheduling, with a reason and the expected end, or resume it."""
    by = operator(request)
    one = get_or_refuse(GpuClass.objects.filter(cluster=read_queries.current_cluster()), slug=slug)
    if request.POST.get("to") == "released":
        catalog_actions.release_class(one.pk, by=by)
        messages.success(request, f"Scheduling of {one.name} resumed. Queued workloads start automatically.")
        return redirect("queue")
    form = HoldForm(request.POST)
    if not form.is_valid():
        field, errors = next(iter(form.errors.items()))
        raise refuse("invalid", f"Scheduling of {one.name} was not paused: {errors[0]}", field=field)
    cleaned = form.cleaned_data
    catalog_actions.hold_class(one.pk, reason=cleaned["reason"], until=cleaned["until"], by=by)
    messages.success(request, f"Scheduling of {one.name} paused. Running workloads continue.")
    return redirect("queue")


@login_required
@require_POST
def queue_team(request: HttpRequest, tenant: str) -> HttpResponse:
    """Suspend the team, so that its workloads do not start, or resume it."""
    by = operator(request)
    namespace = get_or_refuse(Namespace.objects.visible_to(by), tenant__slug=tenant)
    to = lifecycle_policy.ACTIVE if request.POST.get("to") == "resumed" else lifecycle_policy.SUSPENDED
    lifecycle_actions.set_namespace_state(namespace.pk, to=to, because=request.POST.get("because", ""), by=by)
    said = "resumed" if to == lifecycle_policy.ACTIVE else "suspended. No workloads start; running workloads continue"
    messages.success(request, f"{tenant} {said}. Its owners and managers are notified.")
    return redirect("queue")


@login_required
@require_POST
def queue_priority(request: HttpRequest, tenant: str, name: str) -> HttpResponse:
    """Changes the priority of one queued run; its users are notified of the reason."""
    by = operator(request)
    to, because = request.POST.get("priority", ""), request.POST.get("because", "")
    priority_actions.set_priority(tenant, name, to, because=because, by=by)
    messages.success(request, f"{name} of {tenant} now has the priority {to}. Its requester is notified.")
    return redirect("queue")
