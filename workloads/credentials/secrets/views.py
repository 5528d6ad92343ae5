"""The page of a team's secrets. Parse, call one action, render."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from accounts.core.request_actor import actor
from portal.web.refusals import refusal_in_form
from workloads.core import queries
from workloads.credentials import sealing
from workloads.credentials.secrets import actions as secret_actions
from workloads.credentials.secrets import policy as secret_policy
from workloads.credentials.secrets import queries as secret_queries
from workloads.credentials.secrets.forms import SecretForm


@login_required
@sensitive_post_parameters("value")
@require_http_methods(["GET", "POST"])
def secret_list(request: HttpRequest, tenant: str) -> HttpResponse:
    by = actor(request)
    namespace, team = queries.team(by, tenant)
    form = SecretForm(request.POST if request.method == "POST" else None)
    if form.is_bound and form.is_valid():
        with refusal_in_form(form):
            row, is_new = secret_actions.put_secret(
                tenant, form.cleaned_data["name"], form.cleaned_data["value"], by=by
            )
            messages.success(request, f"{row.name} was {'saved' if is_new else 'replaced'}.")
            return redirect("secrets", tenant)
    context = {
        "tenant": namespace.tenant,
        "rows": secret_queries.secret_rows(namespace),
        "form": form,
        "may_put": secret_policy.may_put(by, team, can_seal=sealing.can_seal()),
        "may_change": secret_policy.may_change(by, team),
    }
    return render(request, "workloads/credentials/secrets/secrets.html", context, status=422 if form.is_bound else 200)


@login_required
@require_POST
def secret_delete(request: HttpRequest, tenant: str, name: str) -> HttpResponse:
    secret_actions.delete_secret(tenant, name, by=actor(request))
    messages.success(request, f"{name} was deleted.")
    return redirect("secrets", tenant)
