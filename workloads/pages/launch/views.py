"""The launch pages: the form, links to it, and changes. Parse, call one action, render."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods

from accounts.core.actor import Actor
from accounts.core.request_actor import actor
from catalog.images import image_references
from portal.core.errors import get_or_refuse
from portal.web.refusals import refusal_in_form
from tenants.members.models import in_teams_of
from tenants.models import Namespace, Tenant
from workloads.core import policy as core_policy
from workloads.core import queries, workload_sql
from workloads.credentials.secrets import queries as secret_queries
from workloads.interruption import loss
from workloads.launch import actions, policy
from workloads.launch.form import choices, links, prefill
from workloads.launch.form.choices import LaunchChoices
from workloads.launch.form.forms import ChangeForm, LaunchForm
from workloads.launch.form.preview import LaunchPreview, PreviewContext, launch_preview
from workloads.runs import restart
from workloads.storage import queries as storage_queries
from workloads.storage.queries import VolumeRow, storage_facts


@dataclass(frozen=True)
class InitialValues:
    """Initial values of the form. `source`: "link" (untrusted), "like", "last" or ""; `said`: sentences about values
    not used.
    """

    source: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)
    said: tuple[str, ...] = ()
    like: str = ""


@login_required
@require_http_methods(["GET", "POST"])
def launch(request: HttpRequest, tenant: str) -> HttpResponse:
    """For speed, a valid form makes only the action's few queries; choices are read only when the page is shown.

    With `look`, the page is rendered again with the options for the current choices; nothing is launched.
    """
    by = actor(request)
    is_look = "look" in request.POST
    form = LaunchForm(request.POST if request.method == "POST" and not is_look else None)
    if form.is_bound and form.is_valid():
        with refusal_in_form(form):
            workload = actions.launch(tenant, form.wanted(), by=by)
            return redirect("workload", tenant, workload.name)
    namespace, team = queries.team(by, tenant)
    start = InitialValues(values=_typed(request)) if is_look else _start(request, by, namespace)
    if not form.is_bound:
        form.initial.update(start.values)
    offer = choices.launch_choices(by, namespace, _asked(form))
    form.offer(offer)
    form.offer_secrets(secret_queries.secret_names(namespace))
    form.initial.setdefault("visibility", actions.default_visibility(namespace))
    if not form.is_bound and not form.initial.get("name"):
        form.initial["name"] = prefill.free_name(namespace, start.like or offer.kind)
    going = _going(by, namespace, team, start, offer)
    context = {
        **_form_context(by, namespace, team, form, offer),
        "start": start,
        "going": going,
        "said": [*start.said, *([] if request.method == "POST" else _unavailable(start, offer, going))],
        "share": _share(form),
        "may_launch": policy.may_launch_any(by, team, has_class=offer.has_class),
        "budget_note": core_policy.budget_note(team),
    }
    return render(request, "workloads/pages/launch/launch.html", context, status=422 if form.is_bound else 200)


@login_required
@require_GET
def launch_link(request: HttpRequest) -> HttpResponse:
    """A launch link without a team: redirects to the form of the team, or asks to select one. Nothing starts.

    Raises Refused (404) for a team that the user may not see.
    """
    by = actor(request)
    query = request.GET.copy()
    named = query.pop("team", [""])[-1]
    if named:
        namespace, _team = queries.team(by, named)
        return redirect(_form_of(namespace.tenant.slug, query.urlencode()))
    teams = list(Tenant.objects.filter(in_teams_of(by)).order_by("slug"))
    if len(teams) == 1:
        return redirect(_form_of(teams[0].slug, query.urlencode()))
    ways = [(one.name, _form_of(one.slug, query.urlencode())) for one in teams]
    context = {"ways": ways, "wishes": sorted(links.read_link(request.GET.dict()).values.items())}
    return render(request, "workloads/pages/launch/launch_link.html", context)


@login_required
@require_http_methods(["GET", "POST"])
def change(request: HttpRequest, tenant: str, name: str) -> HttpResponse:
    """Changes size, class or image of a workload: the change is declared, and a new run starts as soon as the old one
    has ended. A running run is stopped only on request; `later` does not stop it.
    """
    by = actor(request)
    namespace, team = queries.team(by, tenant)
    rows = workload_sql.with_related(queries.visible_workloads(by, tenant)).filter(delete_requested_at=None)
    workload = get_or_refuse(rows, name=name)
    run = queries.last_run(workload)
    facts = queries.run_facts(workload, run)
    now = prefill.prefill_unchanged(workload)
    is_look = "look" in request.POST
    # A link may set only the class and the size of the next run.
    link = links.read_link(request.GET.dict()).values if request.method == "GET" else {}
    chosen = {key: link[key] for key in ("gpu_class", "units", "workers") if key in link}
    chosen |= links.size_values(request.GET.dict())
    fixed = {"name": workload.name, "kind": workload.kind}
    typed = request.POST if request.method == "POST" and not is_look else None
    form = ChangeForm(typed, initial={**now.values, **chosen, **(_typed(request) if is_look else {}), **fixed})
    if form.is_bound and form.is_valid():
        with refusal_in_form(form), transaction.atomic():
            actions.declare(tenant, form.wanted(), by=by)
            if facts.is_over:
                actions.start(tenant, name, by=by)
            elif "later" not in request.POST:
                restart.restart(tenant, name, by=by)
            messages.success(request, _changed(name, is_over=facts.is_over, is_later="later" in request.POST))
            return redirect("workload", tenant, name)
    offer = choices.launch_choices(by, namespace, replace(_asked(form), instead_of=workload.pk))
    form.offer(offer)
    form.offer_secrets(secret_queries.secret_names(namespace))
    form.initial.update(fixed)
    context = {
        **_form_context(by, namespace, team, form, offer, number=run.number + 1 if run else 1),
        "workload": workload,
        "is_over": facts.is_over,
        "has_begun": run is not None and run.started_at is not None,
        "said": [*now.said, *_unavailable(InitialValues(values=chosen), offer, None)],
        "may_change": core_policy.may_delete(by, team, facts) or core_policy.may_launch_in(by, team),
    }
    return render(request, "workloads/pages/launch/change.html", context, status=422 if form.is_bound else 200)


# ---- helper functions ------------------------------------------------------------------------------------------------


def _start(request: HttpRequest, by: Actor, namespace: Namespace) -> InitialValues:
    if request.method == "POST":
        return InitialValues()
    query = request.GET.dict()
    if query.get("like"):
        found = prefill.prefill_from_workload(by, namespace.tenant.slug, query["like"])
        return InitialValues("like", found.values, found.said, found.workload)
    link = links.read_link(query)
    if link.values.keys() - links.PLACES or "fresh" in query:
        # Never together with the last launch: a repository of another user must not get the user's own variables.
        return InitialValues("link" if link.values.keys() - links.PLACES else "", link.values, link.said)
    last = prefill.prefill_from_last(by, namespace, link.values.get("kind", ""))
    taken = dict(last.values)
    said = last.said if taken and not link.volume else ()
    volume = {"volume": link.volume} if link.volume else {}
    return InitialValues(
        "last" if taken else "", {**taken, **link.values, **volume}, (*link.said, *said), last.workload
    )


def _typed(request: HttpRequest) -> dict[str, Any]:
    return {**request.POST.dict(), "secrets": request.POST.getlist("secrets")}


def _asked(form: LaunchForm) -> choices.FormSelection:
    return choices.FormSelection(
        kind=form.so_far("kind"),
        gpu_class=form.so_far("gpu_class"),
        image=form.so_far("image_reference") or form.so_far("image"),
        units=_number(form.so_far("units")) or 1,
        hours=_number(form.so_far("run_hours")),
        workers=_number(form.so_far("workers")) or 1,
        priority=form.so_far("priority"),
        gpu_memory_gib=_number(form.so_far("gpu_memory_gib")),
    )


def _number(text: str) -> int | None:
    return int(text) or None if text.isascii() and text.isdigit() and len(text) < 6 else None


def _form_context(
    by: Actor,
    namespace: Namespace,
    team: core_policy.TeamFacts,
    form: LaunchForm,
    offer: LaunchChoices,
    number: int = 1,
) -> dict[str, Any]:
    return {
        "tenant": namespace.tenant,
        "form": form,
        "offer": offer,
        "units": _number(str(form["units"].value() or "")) or 1,
        "plan": _plan(by, namespace, team, form, offer, number),
        "loses": loss.work_loss(offer.kind, checkpoints=bool(form.so_far("checkpoints"))),
        "more_storage": _more_storage(namespace, form) if "volume_gib" in form.errors else "",
    }


def _more_storage(namespace: Namespace, form: LaunchForm) -> str:
    """Returns the address for requesting as much storage as the new volume needs; "" if the cluster offers none."""
    storage, size = storage_facts(namespace), form.data.get("volume_gib", "")
    if storage is None or not (size.isascii() and size.isdigit()):
        return ""
    box = f"units-{storage.slug}"
    wanted = urlencode({box: (storage.used or 0) + int(size[:6])})
    return f"{reverse('request-new', args=[namespace.tenant.slug])}?{wanted}#{box}"


def _plan(
    by: Actor, namespace: Namespace, team: core_policy.TeamFacts, form: LaunchForm, offer: LaunchChoices, number: int
) -> LaunchPreview | None:
    """Returns None while a value is missing or malformed."""
    sent = form.as_typed()
    if not sent.is_valid():
        return None
    place = PreviewContext(namespace, team, {one.name for one in offer.volumes}, number)
    return launch_preview(by, place, sent.wanted())


def _going(
    by: Actor, namespace: Namespace, team: core_policy.TeamFacts, start: InitialValues, offer: LaunchChoices
) -> VolumeRow | None:
    """Returns the volume of the initial values if it is marked for deletion. No query if it is available."""
    name = str(start.values.get("volume", ""))
    if not name or name in {one.name for one in offer.volumes}:
        return None
    named = storage_queries.undeleted(namespace).filter(name=name, delete_requested_at__isnull=False)
    found, _as_of = storage_queries.volume_rows(by, namespace, team, named)
    return next(iter(found), None)


def _unavailable(start: InitialValues, offer: LaunchChoices, going: VolumeRow | None) -> list[str]:
    """Sentences about initial values that are not available to the team, instead of form errors."""
    found = []
    asked = str(start.values.get("gpu_class", ""))
    if asked and asked != offer.chosen:
        taken = f"{offer.gpu_class.label} is selected instead." if offer.gpu_class else "No other class is available."
        text = f"The class '{asked[:60]}' is not available to your team for a {offer.kind}. {taken}"
        found.append(text)
    image = str(start.values.get("image", ""))
    known = {one.name: one for one in offer.images if one.kind == offer.kind}
    if image and image not in known and not image_references.is_below(image, offer.prefixes):
        found.append(f"The catalog has no image '{image[:60]}' for a {offer.kind}. Choose another image.")
    elif image in known and known[image].problem:
        found.append(f"{known[image].problem} Choose another image or class.")
    volume = str(start.values.get("volume", ""))
    if volume and going is None and volume not in {one.name for one in offer.volumes}:
        found.append(f"The volume '{volume[:60]}' does not exist. A launch creates a new volume with this name.")
    return found


@dataclass(frozen=True)
class ShareLink:
    """The current choices as a link, and as a Markdown button."""

    link: str
    markdown: str


def _share(form: LaunchForm) -> ShareLink:
    values = {name: form[name].value() for name in ("gpu_class", "image", "units", "repository", "reference")}
    values["image"] = form["image_reference"].value() or values["image"]
    if form["kind"].value() == "job":
        values |= {"kind": "job", "workers": form["workers"].value()}
    link = f"{settings.PORTAL_URL}{reverse('launch-link')}?{links.write_link(values)}"
    badge = f"{settings.PORTAL_URL}{settings.STATIC_URL}portal/launch.svg"
    return ShareLink(link, f"[![Open on GPU Portal]({badge})]({link})")


def _form_of(tenant: str, query: str) -> str:
    address = reverse("launch", args=[tenant])
    return f"{address}?{query}" if query else address


def _changed(name: str, *, is_over: bool, is_later: bool) -> str:
    if is_over:
        return f"The changes were saved. {name} was started again."
    if is_later:
        return f"The changes were saved for the next run of {name}. The current run is not changed."
    return f"The changes were saved. {name} was asked to stop and starts again automatically with them."
