"""Steps of a class's life cycle in the admin, each a page with its own form: pause, resume, retire.

The pages change nothing themselves: they call actions. A refusal is shown in the form, beside its field.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path
from django.utils import timezone

from accounts.core.request_actor import actor
from catalog.classes import actions, life_cycle
from catalog.classes.admin_pages import admin_page, redirect_to_class
from catalog.classes.forms import HoldForm, ReleaseForm, RetireForm
from catalog.models import GpuClass
from portal.core.errors import get_or_refuse
from portal.web.refusals import refusal_in_form


@dataclass(frozen=True)
class LifeCycleStep:
    """`begin`: the form's initial values; `do` raises Refused; `done`: a sentence."""

    title: str
    note: str
    form: type[forms.Form]
    begin: Callable[[GpuClass], dict[str, Any]]
    do: Callable[..., GpuClass]
    done: str


STEPS = {
    "hold": LifeCycleStep(
        "Pause scheduling",
        "New workloads stay queued. Running workloads continue.",
        HoldForm,
        lambda one: {"reason": one.held_reason, "until": one.held_until},
        actions.hold_class,
        "Scheduling is paused; running workloads continue.",
    ),
    "release": LifeCycleStep(
        "Resume scheduling",
        "Queued workloads start automatically when GPUs and quota are available.",
        ReleaseForm,
        lambda one: {},
        actions.release_class,
        "Scheduling is resumed.",
    ),
    "retire": LifeCycleStep(
        "Retire",
        "No new requests and no new workloads. Owners of the teams with quota are notified.",
        RetireForm,
        lambda one: {
            "successor": one.successor.slug if one.successor else "",
            "message": one.retiring_message,
            "runs_until": one.runs_until,
        },
        actions.retire_class,
        "The class is being retired; owners of the teams with quota are notified.",
    ),
}


class LifeCycleStepsMixin:
    """Adds a page for each step to the ModelAdmin of GpuClass."""

    admin_site: Any

    def get_urls(self) -> list[Any]:
        pages = [
            path(f"<int:pk>/{name}/", admin_page(self.admin_site, _step_view(step)), name=f"catalog_gpuclass_{name}")
            for name, step in STEPS.items()
        ]
        return [*pages, *super().get_urls()]  # type: ignore[misc]


def _step_view(step: LifeCycleStep) -> Callable[..., HttpResponse]:
    def view(request: HttpRequest, context: dict[str, Any], *, pk: int) -> HttpResponse:
        one = get_or_refuse(GpuClass.objects.select_related("successor"), pk=pk)
        form = step.form(request.POST if request.method == "POST" else None, initial=step.begin(one))
        if form.is_valid():
            with refusal_in_form(form):
                step.do(pk, **form.cleaned_data, by=actor(request))
                messages.success(request, f"{one.name}: {step.done}")
                return redirect_to_class(pk)
        told = life_cycle.hold_sentence(one, now=timezone.now())
        more = {"title": f"{step.title}: {one.name}", "step": step, "form": form, "gpu_class": one, "told": told}
        return render(request, "admin/catalog/life_cycle_step.html", {**context, **more})

    return view
