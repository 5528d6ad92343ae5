"""The page Queue for staff: what waits and why, hold and release of a class, suspend and resume of a team."""

from __future__ import annotations

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_POST

from accounts.edge import actor, operator
from catalog import actions as catalog_actions
from catalog import policy as catalog_policy
from catalog import queries as catalog
from catalog.models import GpuClass
from cluster.run_spec import PRIORITIES
from desk.queries import queue as queries
from desk.queries.queue import Filter
from portal.errors import get_or_refuse, refuse
from tenants import life, life_policy
from tenants.models import Namespace
from workloads import priority


class HoldForm(forms.Form):
    reason = forms.CharField(max_length=catalog_policy.HOLD_REASON_MAX)
    until = forms.DateTimeField(required=False)


@login_required
@require_GET
def queue(request: HttpRequest) -> HttpResponse:
    """For operators, administrators and auditors; for everybody else it is not there. So is what follows."""
    by = queries.reader(actor(request))
    asked = request.GET
    chosen = Filter(asked.get("class", "")[:60], asked.get("team", "")[:60], asked.get("reason", "")[:60])
    found = queries.queue(catalog.cluster(), chosen, cursor=asked.get("cursor"))
    context = {
        "queue": found,
        "chosen": chosen,
        "is_filtered": any((chosen.gpu_class, chosen.team, chosen.reason)),
        "reasons": queries.reasons(catalog.cluster(), chosen),
        "may_operate": by.operates,
        "priorities": PRIORITIES,
        "next_cursor": found.next_cursor,
    }
    return render(request, "desk/queue.html", context)


@login_required
@require_POST
def queue_class(request: HttpRequest, slug: str) -> HttpResponse:
    """Hold it, with a reason and when it is expected to open, or release it."""
    by = operator(request)
    one = get_or_refuse(GpuClass.objects.filter(cluster=catalog.cluster()), slug=slug)
    if request.POST.get("to") == "released":
        catalog_actions.release_class(one.pk, by=by)
        messages.success(request, f"{one.name} is released; what waits starts by itself.")
        return redirect("queue")
    form = HoldForm(request.POST)
    if not form.is_valid():
        field, errors = next(iter(form.errors.items()))
        raise refuse("invalid", f"To hold {one.name}: {errors[0]}", field=field)
    cleaned = form.cleaned_data
    catalog_actions.hold_class(one.pk, reason=cleaned["reason"], until=cleaned["until"], by=by)
    messages.success(request, f"{one.name} is held; what runs goes on.")
    return redirect("queue")


@login_required
@require_POST
def queue_team(request: HttpRequest, tenant: str) -> HttpResponse:
    """Suspend the team, so that its queue is on hold, or resume it."""
    by = operator(request)
    namespace = get_or_refuse(Namespace.objects.visible_to(by), tenant__slug=tenant)
    to = life_policy.ACTIVE if request.POST.get("to") == "resumed" else life_policy.SUSPENDED
    life.set_wanted(namespace.pk, to=to, because=request.POST.get("because", ""), by=by)
    said = "its queue is open again" if to == life_policy.ACTIVE else "nothing new starts, what runs goes on"
    messages.success(request, f"{tenant}: {said}. Its owners and managers are told.")
    return redirect("queue")


@login_required
@require_POST
def queue_priority(request: HttpRequest, tenant: str, name: str) -> HttpResponse:
    """Of one run that waits; its people are told why."""
    by = operator(request)
    to, because = request.POST.get("priority", ""), request.POST.get("because", "")
    priority.set_priority(tenant, name, to, because=because, by=by)
    messages.success(request, f"{name} of {tenant} waits as {to} now; who asked for it is told.")
    return redirect("queue")
