"""The page of a team's sealed secrets. Parse, call one word, render."""

from __future__ import annotations

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from accounts.edge import actor
from accounts.known_fields import KnownFieldsForm
from portal.errors import refusal_beside
from workloads import queries, sealing, secret_policy, secrets
from workloads.forms import EXACTLY
from workloads.options import ENV_NAME_LIMIT
from workloads.queries import team_secrets


class SecretForm(KnownFieldsForm):
    name = forms.CharField(
        max_length=ENV_NAME_LIMIT,
        help_text="Of the variable: WANDB_API_KEY. One that is there already gets the new value.",
        widget=forms.TextInput(attrs=EXACTLY),
    )
    value = forms.CharField(
        strip=False,
        max_length=secret_policy.VALUE_LIMIT,
        help_text="Never shown again. Values of several lines are sent by the API.",
        widget=forms.PasswordInput(render_value=False, attrs={"autocomplete": "off"}),
    )


@login_required
@sensitive_post_parameters("value")
@require_http_methods(["GET", "POST"])
def secret_list(request: HttpRequest, tenant: str) -> HttpResponse:
    by = actor(request)
    namespace, team = queries.team(by, tenant)
    form = SecretForm(request.POST if request.method == "POST" else None)
    if form.is_bound and form.is_valid():
        with refusal_beside(form):
            row, is_new = secrets.put(tenant, form.cleaned_data["name"], form.cleaned_data["value"], by=by)
            messages.success(request, f"{row.name} is {'kept' if is_new else 'replaced'}.")
            return redirect("secrets", tenant)
    context = {
        "tenant": namespace.tenant,
        "rows": team_secrets.rows(namespace),
        "form": form,
        "may_put": secret_policy.may_put(by, team, can_seal=sealing.can_seal()),
        "may_change": secret_policy.may_change(by, team),
    }
    return render(request, "workloads/secrets.html", context, status=422 if form.is_bound else 200)


@login_required
@require_POST
def secret_delete(request: HttpRequest, tenant: str, name: str) -> HttpResponse:
    secrets.delete(tenant, name, by=actor(request))
    messages.success(request, f"{name} is deleted.")
    return redirect("secrets", tenant)
