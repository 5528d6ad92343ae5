"""The page of a team's images: allowed prefixes and registry credentials. Parse, call one action, render."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_GET, require_POST

from accounts.core.request_actor import actor
from portal.web.refusals import refusal_in_form
from tenants.class_access.image_prefixes import actions as image_prefixe_actions
from tenants.class_access.image_prefixes import queries as prefixes
from tenants.core import policy as core_policy
from workloads.core import queries
from workloads.credentials import sealing
from workloads.credentials.registries import actions as registry_actions
from workloads.credentials.registries import policy as registry_policy
from workloads.credentials.registries import queries as shown
from workloads.credentials.registries.forms import PrefixForm, RegistryForm


@login_required
@require_GET
def team_images(request: HttpRequest, tenant: str) -> HttpResponse:
    return _page(request, tenant, PrefixForm(), RegistryForm())


@login_required
@require_POST
def prefix_allow(request: HttpRequest, tenant: str) -> HttpResponse:
    by = actor(request)
    queries.team(by, tenant)
    form = PrefixForm(request.POST)
    if form.is_valid():
        with refusal_in_form(form):
            row, is_new = image_prefixe_actions.allow_prefix(tenant, form.cleaned_data["prefix"], by=by)
            messages.success(request, f"{row.prefix} is allowed{'' if is_new else ' already'}.")
            return redirect("team-images", tenant)
    return _page(request, tenant, form, RegistryForm())


@login_required
@require_POST
def prefix_end(request: HttpRequest, tenant: str, pk: int) -> HttpResponse:
    row = image_prefixe_actions.disallow_prefix(tenant, pk, by=actor(request))
    messages.success(request, f"{row.prefix} was removed. Queued and running workloads with its images continue.")
    return redirect("team-images", tenant)


@login_required
@sensitive_post_parameters("username", "password")
@require_POST
def registry_put(request: HttpRequest, tenant: str) -> HttpResponse:
    by = actor(request)
    queries.team(by, tenant)
    form = RegistryForm(request.POST)
    if form.is_valid():
        typed = form.cleaned_data
        with refusal_in_form(form):
            sign_in = registry_actions.RegistryLogin(typed["username"], typed["password"])
            row, is_new = registry_actions.put_login(tenant, typed["registry"], sign_in, by=by)
            messages.success(request, f"The credentials for {row.registry} were {'saved' if is_new else 'replaced'}.")
            return redirect("team-images", tenant)
    return _page(request, tenant, PrefixForm(), form)


@login_required
@require_POST
def registry_delete(request: HttpRequest, tenant: str, registry: str) -> HttpResponse:
    registry_actions.delete_login(tenant, registry, by=actor(request))
    messages.success(request, f"The credentials for {registry} were deleted, also for queued and running runs.")
    return redirect("team-images", tenant)


def _page(request: HttpRequest, tenant: str, prefix: PrefixForm, registry: RegistryForm) -> HttpResponse:
    by = actor(request)
    namespace, team = queries.team(by, tenant)
    allowed, kept = list(prefixes.prefix_rows(namespace.tenant_id)), list(shown.stored_logins(namespace))
    used = shown.custom_image_workloads(namespace)
    texts = [one.prefix for one in allowed]
    registry.offer(shown.registry_hosts(texts))
    context = {
        "tenant": namespace.tenant,
        "prefixes": shown.prefix_rows(allowed, kept, used),
        "registries": shown.registry_rows(kept, texts, used),
        "prefix_form": prefix,
        "form": registry,
        "may_allow": core_policy.may_operate(by),
        "may_put": registry_policy.may_put(by, team, can_seal=sealing.can_seal()),
        "may_change": registry_policy.may_change(by, team),
    }
    return render(
        request,
        "workloads/credentials/registries/images.html",
        context,
        status=422 if prefix.is_bound or registry.is_bound else 200,
    )
