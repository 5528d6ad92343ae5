"""The page of a team's tokens."""

from __future__ import annotations

from functools import partial

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from accounts.api_tokens import queries as accounts
from accounts.api_tokens.forms import TokenForm
from accounts.core.request_actor import actor, has_second_factor
from portal.web.refusals import refusal_in_form
from tenants.members import queries
from tenants.members.tokens import actions
from tenants.members.tokens import policy as token_policy
from tenants.members.tokens import queries as token_queries


@login_required
@never_cache
@require_http_methods(["GET", "POST"])
def team_tokens(request: HttpRequest, tenant: str) -> HttpResponse:
    """GET: the list and a form. POST: creates a token, whose secret is only in this response."""
    by = actor(request)
    team, found = token_queries.team_with_tokens(tenant, by=by)
    new_form = partial(TokenForm, tenant=tenant, has_second_factor=has_second_factor(request))
    form = new_form(request.POST or None)
    secret = None
    if request.method == "POST" and form.is_valid():
        with refusal_in_form(form):
            _token, secret = actions.create_team_token(tenant, **form.cleaned_data, by=by)
            form = new_form()
    example = f'curl -H "Authorization: Bearer $TOKEN" {settings.PORTAL_URL}/api/v1/teams/{team.slug}/tokens'
    context = {
        "tenant": team,
        "tokens": [accounts.token_row(token) for token in found],
        "form": form,
        "may_make": token_policy.may_create_team_token(by, queries.standing_of(by, team)),
        "new_token": secret,
        "api_example": example,
    }
    return render(request, "tenants/members/tokens/tokens.html", context, status=422 if form.is_bound else 200)


@login_required
@require_POST
def team_token_revoke(request: HttpRequest, tenant: str, prefix: str) -> HttpResponse:
    token = actions.revoke_team_token(tenant, prefix, by=actor(request))
    messages.success(request, f"The token {token.name} was revoked. It no longer works.")
    return redirect("team-tokens", tenant)
