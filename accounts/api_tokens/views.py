"""Pages about tokens: the user's own, and all tokens for administrators."""

from __future__ import annotations

from functools import partial

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from accounts.api_tokens import actions as api_token_actions
from accounts.api_tokens import policy as api_token_policy
from accounts.api_tokens import queries as api_token_queries
from accounts.api_tokens.forms import TokenForm
from accounts.core.request_actor import actor, administrator, has_second_factor
from accounts.rest.paging import page_of
from portal.web.refusals import refusal_in_form


@login_required
@never_cache
@require_http_methods(["GET", "POST"])
def tokens(request: HttpRequest) -> HttpResponse:
    """GET: the list and a form. POST: creates a token. Its secret is in this response only."""
    new_form = partial(TokenForm, has_second_factor=has_second_factor(request))
    form = new_form(request.POST or None)
    secret = None
    if request.method == "POST" and form.is_valid():
        with refusal_in_form(form):
            _token, secret = api_token_actions.create_token(**form.cleaned_data, by=actor(request))
            form = new_form()
    context = {
        "tokens": [api_token_queries.token_row(token) for token in api_token_queries.tokens_of(actor(request).person)],
        "form": form,
        "new_token": secret,
        "api_example": f'curl -H "Authorization: Bearer $TOKEN" {settings.PORTAL_URL}/api/v1/me',
        "sees_all_tokens": api_token_policy.may_see_all_tokens(actor(request)) is None,
    }
    return render(request, "accounts/api_tokens/tokens.html", context, status=422 if form.is_bound else 200)


@login_required
@require_GET
def all_tokens(request: HttpRequest) -> HttpResponse:
    """For administrators: the tokens of one user or of all users, to revoke them."""
    administrator(request)
    owner = request.GET.get("owner", "").strip()
    page = page_of(api_token_queries.all_tokens(owner=owner), cursor=request.GET.get("cursor"))
    tokens = [api_token_queries.token_row(token) for token in page.items]
    context = {"tokens": tokens, "owner": owner, "next_cursor": page.next_cursor}
    return render(request, "accounts/api_tokens/all_tokens.html", context)


@login_required
@require_POST
def token_revoke(request: HttpRequest, prefix: str) -> HttpResponse:
    by = actor(request)
    token = api_token_actions.revoke_token(prefix, by=by)
    messages.success(request, f"The token {token.name} was revoked. It no longer works.")
    return redirect("tokens" if token.user_id == by.user_id and not token.tenant else "all-tokens")
