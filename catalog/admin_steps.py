"""Steps of a class's life in the admin, each a page with its own form: hold, release, retire; and proposed classes.

Like the rest of the admin it changes nothing itself. A refusal stands in the form, beside its field.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect, render
from django.urls import path, reverse
from django.utils import timezone
from django.views.decorators.http import require_POST

from accounts.actor import Actor
from accounts.edge import actor
from catalog import actions, life_cycle, policy, queries
from catalog.discovery import Proposal
from catalog.models import GpuClass
from portal.errors import Refused, get_or_refuse, refusal_beside, refuse

WHEN = forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M")


class HoldForm(forms.Form):
    reason = forms.CharField(
        label="Held for",
        max_length=policy.HOLD_REASON_MAX,
        help_text="Goes on the sentence “A100 is held since 09:10 for …”; everybody who waits reads it.",
    )
    until = forms.DateTimeField(label="Expected to open", required=False, widget=WHEN, help_text="Empty: unknown.")


class ReleaseForm(forms.Form):
    """Nothing to fill in."""


class RetireForm(forms.Form):
    successor = forms.CharField(max_length=40, required=False, help_text="Short name of the class that replaces it.")
    message = forms.CharField(max_length=policy.MESSAGE_MAX, required=False, help_text="Holders read it.")
    runs_until = forms.DateTimeField(
        label="What runs may go on until",
        required=False,
        widget=WHEN,
        help_text="What still runs then is stopped. Empty: it goes on.",
    )


@dataclass(frozen=True)
class Step:
    """`begin`: the form's first values; `do` raises Refused; `done`: a sentence."""

    title: str
    note: str
    form: type[forms.Form]
    begin: Callable[[GpuClass], dict[str, Any]]
    do: Callable[..., GpuClass]
    done: str


STEPS = {
    "hold": Step(
        "Hold",
        "Nothing new starts on it. What runs goes on.",
        HoldForm,
        lambda one: {"reason": one.held_reason, "until": one.held_until},
        actions.hold_class,
        "It is held; what runs goes on.",
    ),
    "release": Step(
        "Release",
        "What waits for it starts by itself, as far as there are cards and quota.",
        ReleaseForm,
        lambda one: {},
        actions.release_class,
        "It is released.",
    ),
    "retire": Step(
        "Retire",
        "No new requests, nothing new starts. Owners of the teams that hold units are told.",
        RetireForm,
        lambda one: {
            "successor": one.successor.slug if one.successor else "",
            "message": one.retiring_message,
            "runs_until": one.runs_until,
        },
        actions.retire_class,
        "It is being retired; owners of the teams that hold units are told.",
    ),
}


class StepsMixin:
    """For the ModelAdmin of GpuClass."""

    admin_site: Any

    def get_urls(self) -> list[Any]:
        pages = [
            path(f"<int:pk>/{name}/", self._page(_step_view(step)), name=f"catalog_gpuclass_{name}")
            for name, step in STEPS.items()
        ]
        proposed = [
            path("proposed/", self._page(proposed_view), name="catalog_gpuclass_proposed"),
            path("proposed/<slug:slug>/", self._page(decide_view), name="catalog_gpuclass_decide"),
        ]
        return [*pages, *proposed, *super().get_urls()]  # type: ignore[misc]

    def _page(self, view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
        def checked(request: HttpRequest, **kwargs: Any) -> HttpResponse:
            if policy.may_edit(actor(request)) is not None:
                raise PermissionDenied
            return view(request, self.admin_site.each_context(request), **kwargs)

        wrapped: Callable[..., HttpResponse] = self.admin_site.admin_view(checked)
        return wrapped


def _step_view(step: Step) -> Callable[..., HttpResponse]:
    def view(request: HttpRequest, context: dict[str, Any], *, pk: int) -> HttpResponse:
        one = get_or_refuse(GpuClass.objects.select_related("successor"), pk=pk)
        form = step.form(request.POST if request.method == "POST" else None, initial=step.begin(one))
        if form.is_valid():
            with refusal_beside(form):
                step.do(pk, **form.cleaned_data, by=actor(request))
                messages.success(request, f"{one.name}: {step.done}")
                return _to_class(pk)
        told = life_cycle.hold(one, now=timezone.now())
        more = {"title": f"{step.title} {one.name}", "step": step, "form": form, "gpu_class": one, "told": told}
        return render(request, "admin/catalog/step.html", {**context, **more})

    return view


# ---- proposed classes ------------------------------------------------------------------------------------------------


def proposed_view(request: HttpRequest, context: dict[str, Any]) -> HttpResponse:
    cluster = queries.cluster()
    found = queries.proposals(cluster)
    known = set(GpuClass.objects.filter(cluster=cluster).values_list("slug", flat=True))
    more = {
        "title": "Proposed classes",
        "is_known": found is not None,
        "proposals": [one for one in found.proposals if one.slug not in known] if found else [],
        "problems": found.problems if found else (),
        "dismissed": queries.dismissed(cluster),
    }
    return render(request, "admin/catalog/proposed.html", {**context, **more})


@require_POST
def decide_view(request: HttpRequest, context: dict[str, Any], *, slug: str) -> HttpResponse:
    """One of the buttons beside a proposal; a refusal is a message above the list."""
    try:
        return _decide(request, slug, actor(request))
    except Refused as refused:
        messages.error(request, str(refused))
        return redirect("admin:catalog_gpuclass_proposed")


def _decide(request: HttpRequest, slug: str, by: Actor) -> HttpResponse:
    verb = request.POST.get("verb", "")
    if verb == "dismiss":
        actions.dismiss_proposal(slug, reason=request.POST.get("reason", ""), by=by)
        messages.success(request, f"{slug} is no longer proposed.")
    elif verb == "restore":
        actions.restore_proposal(slug, by=by)
        messages.success(request, f"{slug} is proposed again.")
    elif verb == "accept":
        made = actions.accept_proposals([_proposal(slug)], by=by)
        messages.success(request, f"{slug} is open." if made else f"{slug} was there already.")
    elif verb == "edit":
        draft = actions.create_class(slug=slug, by=by, **actions.values_of(_proposal(slug)))
        messages.success(request, f"{slug} is a draft; change what you like, then open it.")
        return _to_class(draft.pk)
    return redirect("admin:catalog_gpuclass_proposed")


def _proposal(slug: str) -> Proposal:
    found = queries.proposals(queries.cluster())
    for one in found.proposals if found else ():
        if one.slug == slug:
            return one
    raise refuse("not_proposed", f"{slug} is not proposed now: the nodes have changed, or somebody dismissed it.")


def _to_class(pk: int) -> HttpResponseRedirect:
    return HttpResponseRedirect(reverse("admin:catalog_gpuclass_change", args=[pk]))
