"""The page of a team's own images: what staff allow, and how the team signs in to registries. Parse, call, render."""

from __future__ import annotations

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_GET, require_POST

from accounts.edge import actor
from accounts.known_fields import KnownFieldsForm
from catalog.references import PREFIX_LIMIT
from portal.errors import refusal_beside
from tenants import image_prefixes
from tenants import policy as tenants
from tenants.queries import image_prefixes as prefixes
from workloads import queries, registries, registry_policy, sealing
from workloads.forms import EXACTLY, AnyChoice
from workloads.queries import registries as shown


class PrefixForm(KnownFieldsForm):
    prefix = forms.CharField(  # type: ignore[assignment]
        max_length=PREFIX_LIMIT,
        help_text="Host and parts of the path: registry.example.org/vision/. What is below it may be used.",
        widget=forms.TextInput(attrs=EXACTLY),
    )


class RegistryForm(KnownFieldsForm):
    """The action knows the registries; they are offered when the form is shown."""

    registry = AnyChoice(help_text="Those of the prefixes that are allowed to the team.")
    username = forms.CharField(
        max_length=registry_policy.USERNAME_LIMIT,
        label="User name",
        help_text="Best of a robot account that may only read.",
        widget=forms.TextInput(attrs=EXACTLY),
    )
    password = forms.CharField(
        strip=False,
        max_length=registry_policy.PASSWORD_LIMIT,
        label="Password or token",
        help_text="Never shown again. Those of several lines are sent by the API.",
        widget=forms.PasswordInput(render_value=False, attrs={"autocomplete": "off"}),
    )

    def offer(self, hosts: list[str]) -> None:
        field = self.fields["registry"]
        assert isinstance(field, AnyChoice)
        field.choices = [(host, host) for host in hosts]


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
        with refusal_beside(form):
            row, is_new = image_prefixes.allow(tenant, form.cleaned_data["prefix"], by=by)
            messages.success(request, f"{row.prefix} is allowed{'' if is_new else ' already'}.")
            return redirect("team-images", tenant)
    return _page(request, tenant, form, RegistryForm())


@login_required
@require_POST
def prefix_end(request: HttpRequest, tenant: str, pk: int) -> HttpResponse:
    row = image_prefixes.disallow(tenant, pk, by=actor(request))
    messages.success(request, f"{row.prefix} is not allowed any more. What runs or waits with an image of it goes on.")
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
        with refusal_beside(form):
            sign_in = registries.SignIn(typed["username"], typed["password"])
            row, is_new = registries.put(tenant, typed["registry"], sign_in, by=by)
            messages.success(request, f"The credentials for {row.registry} are {'kept' if is_new else 'replaced'}.")
            return redirect("team-images", tenant)
    return _page(request, tenant, PrefixForm(), form)


@login_required
@require_POST
def registry_delete(request: HttpRequest, tenant: str, registry: str) -> HttpResponse:
    registries.delete(tenant, registry, by=actor(request))
    messages.success(request, f"The credentials for {registry} are deleted, also from what runs or waits.")
    return redirect("team-images", tenant)


def _page(request: HttpRequest, tenant: str, prefix: PrefixForm, registry: RegistryForm) -> HttpResponse:
    by = actor(request)
    namespace, team = queries.team(by, tenant)
    allowed, kept = list(prefixes.of(namespace.tenant_id)), list(shown.of(namespace))
    used = shown.own_images(namespace)
    texts = [one.prefix for one in allowed]
    registry.offer(shown.hosts_of(texts))
    context = {
        "tenant": namespace.tenant,
        "prefixes": shown.prefix_rows(allowed, kept, used),
        "registries": shown.rows(kept, texts, used),
        "prefix_form": prefix,
        "form": registry,
        "may_allow": tenants.may_operate(by),
        "may_put": registry_policy.may_put(by, team, can_seal=sealing.can_seal()),
        "may_change": registry_policy.may_change(by, team),
    }
    return render(
        request, "workloads/images.html", context, status=422 if prefix.is_bound or registry.is_bound else 200
    )
