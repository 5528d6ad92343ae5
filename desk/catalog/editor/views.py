"""Pages of the catalog's editor, for operators with a second factor. 404 for all users who may not edit the catalog."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from accounts.core.actor import Actor
from accounts.core.request_actor import operator, refuse_without_second_factor
from catalog.classes import actions as class_actions
from catalog.classes.forms import RetireForm
from catalog.classes.policy import TRANSITIONS
from catalog.images import actions as image_actions
from catalog.models import GpuClass, Image
from cluster.models import Cluster
from cluster.reads import queries as read_queries
from desk.catalog.editor import actions, queries
from desk.catalog.editor.forms import ClassEditorForm, ImageEditorForm
from desk.classes.queries import class_images
from portal.core.errors import get_or_refuse
from portal.web.refusals import refusal_in_form


def _editor(request: HttpRequest) -> tuple[Actor, Cluster]:
    """As for the administration. Raises Refused: not_found (404), second_factor_needed (403)."""
    by = operator(request)
    refuse_without_second_factor(request)
    return by, read_queries.current_cluster()


@login_required
@require_GET
def class_list(request: HttpRequest) -> HttpResponse:
    _, cluster = _editor(request)
    context = {"classes": queries.editable_classes(cluster), "images": queries.images_by_kind()}
    return render(request, "desk/catalog/editor/classes.html", context)


@login_required
@require_http_methods(["GET", "POST"])
def class_new(request: HttpRequest) -> HttpResponse:
    """`?like=SLUG`: starts with the values of that class."""
    by, cluster = _editor(request)
    like = GpuClass.objects.filter(cluster=cluster, slug=request.GET.get("like", "")[:40]).first()
    return _form_page(request, by, cluster, None, like)


@login_required
@require_http_methods(["GET", "POST"])
def class_edit(request: HttpRequest, slug: str) -> HttpResponse:
    by, cluster = _editor(request)
    one = get_or_refuse(GpuClass.objects.filter(cluster=cluster).select_related("cluster", "successor"), slug=slug)
    return _form_page(request, by, cluster, one, None)


@login_required
@require_POST
def class_state(request: HttpRequest, slug: str) -> HttpResponse:
    """Activate, retire, or close a class that is being retired."""
    by, cluster = _editor(request)
    one = get_or_refuse(GpuClass.objects.filter(cluster=cluster).select_related("cluster", "successor"), slug=slug)
    to = request.POST.get("to", "")
    if to != GpuClass.LifeCycle.RETIRING:
        moved = class_actions.move_class(one.pk, to=to, by=by)
        messages.success(request, f"{moved.name} is now {moved.get_life_cycle_display()}.")
        return redirect("class-edit", slug)
    form = RetireForm(request.POST)
    if form.is_valid():
        with refusal_in_form(form):
            class_actions.retire_class(one.pk, **form.cleaned_data, by=by)
            messages.success(request, f"{one.name} is being retired. Owners of the teams with quota are notified.")
            return redirect("class-edit", slug)
    return _form_page(request, by, cluster, one, None, retire=form)


@login_required
@require_http_methods(["GET", "POST"])
def image_new(request: HttpRequest) -> HttpResponse:
    by, _ = _editor(request)
    return _image_page(request, by, None)


@login_required
@require_http_methods(["GET", "POST"])
def image_edit(request: HttpRequest, pk: int) -> HttpResponse:
    by, _ = _editor(request)
    return _image_page(request, by, get_or_refuse(Image.objects.all(), pk=pk))


@login_required
@require_POST
def image_move(request: HttpRequest, pk: int) -> HttpResponse:
    """`to`: up or down, by one place."""
    by, _ = _editor(request)
    image_actions.move_image(pk, earlier=request.POST.get("to") == "up", by=by)
    return redirect(f"{reverse('catalog-editor')}#images")


@login_required
@require_POST
def image_remove(request: HttpRequest, pk: int) -> HttpResponse:
    by, _ = _editor(request)
    image_actions.remove_image(pk, by=by)
    messages.success(request, "Image removed.")
    return redirect(f"{reverse('catalog-editor')}#images")


def _image_page(request: HttpRequest, by: Actor, image: Image | None) -> HttpResponse:
    sent = request.POST if request.method == "POST" else None
    form = ImageEditorForm(sent, instance=image or Image(), is_new=image is None)
    if sent is not None and form.is_valid():
        with refusal_in_form(form):
            name, seen = form.cleaned_data.get("name", ""), sent.get("seen", "")
            saved = actions.save_image(image, name=name, values=form.values(), seen=seen, by=by)
            messages.success(request, f"{saved.name} saved.")
            return redirect(f"{reverse('catalog-editor')}#images")
    seen = sent.get("seen", "") if sent is not None else actions.version_of_image(image) if image else ""
    context = {"image": image, "form": form, "seen": seen}
    return render(request, "desk/catalog/editor/image.html", context, status=422 if form.errors else 200)


def _form_page(
    request: HttpRequest,
    by: Actor,
    cluster: Cluster,
    one: GpuClass | None,
    like: GpuClass | None,
    *,
    retire: RetireForm | None = None,
) -> HttpResponse:
    """`retire`: the refused form for retiring, beside which the form of the class is shown as stored."""
    sent = request.POST if request.method == "POST" and retire is None else None
    form = ClassEditorForm(sent, instance=one or like or GpuClass(), is_new=one is None, initial=_initial(one, like))
    plan = None
    if sent is not None and form.is_valid():
        change: dict[str, Any] = {
            "cluster": cluster,
            "slug": form.cleaned_data.get("slug", ""),
            "values": form.values(),
            "seen": sent.get("seen", ""),
            "by": by,
        }
        with refusal_in_form(form):
            if sent.get("do") == "save":
                saved = actions.save_class(one, **change)
                messages.success(request, f"{saved.name} saved." if one else f"{saved.name} is a draft. Activate it.")
                return redirect("class-edit", saved.slug)
            plan = actions.plan_class(one, **change)
    if one is not None:
        form.show_trials(*queries.trial_texts(one))
    context = {
        "gpu_class": one,
        "form": form,
        "sections": list(form.sections()),
        "plan": plan,
        "seen": sent.get("seen", "") if sent is not None else actions.version_of(one) if one else "",
        "known": queries.suggestions(cluster, (one or like or GpuClass()).product),
        "retire": retire or RetireForm(initial=_retirement(one)),
        "steps": _steps(one),
        "images": list(class_images(one)) if one and not one.is_storage else None,
    }
    is_refused = bool(form.errors or (retire and retire.errors))
    return render(request, "desk/catalog/editor/class.html", context, status=422 if is_refused else 200)


def _initial(one: GpuClass | None, like: GpuClass | None) -> dict[str, Any]:
    return {"slug": ""} if one is None and like is not None else {}


def _retirement(one: GpuClass | None) -> dict[str, Any]:
    if one is None:
        return {}
    successor = one.successor.slug if one.successor else ""
    return {"successor": successor, "message": one.retiring_message, "runs_until": one.runs_until}


def _steps(one: GpuClass | None) -> list[str]:
    """The possible next states; retiring has a form of its own."""
    return [] if one is None else [to for to in TRANSITIONS[one.life_cycle] if to != GpuClass.LifeCycle.RETIRING]
