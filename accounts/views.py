"""Pages of the account: sign in and out, tokens."""

from __future__ import annotations

from typing import Any

import structlog
from allauth.account.internal.flows.login import perform_password_login
from allauth.account.models import Login as SignIn
from django.conf import settings
from django.contrib import auth, messages
from django.contrib.auth.decorators import login_required
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from accounts import actions, policy, queries, slow_down
from accounts.edge import actor, client_address
from accounts.forms import SignInForm, TokenForm, status_of
from accounts.paging import page_of
from portal.errors import refusal_beside, refuse_if
from portal.way_back import own_hosts

log = structlog.get_logger(__name__)


class Login(LoginView):
    template_name = "accounts/login.html"
    authentication_form = SignInForm
    redirect_authenticated_user = True

    def get_success_url_allowed_hosts(self, request: HttpRequest | None = None) -> set[str]:
        return own_hosts()

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        """Signed in, or on to the second factor; accounts/adapters.py records it when all was proved."""
        slow_down.forget(form.cleaned_data["username"], client_address(self.request))
        proved = SignIn(user=form.get_user(), redirect_url=self.get_success_url())
        response: HttpResponse = perform_password_login(self.request, {}, proved)
        return response

    def form_invalid(self, form: AuthenticationForm) -> HttpResponse:
        log.info("sign_in_failed", email=form.data.get("username", "")[:254], address=client_address(self.request))
        response = super().form_invalid(form)
        response.status_code = status_of(form)
        return response

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(**kwargs, issuer_name=settings.OIDC.name if settings.OIDC else "")


@require_POST
def logout(request: HttpRequest) -> HttpResponse:
    if request.user.is_authenticated:
        actions.signed_out(by=actor(request))
    auth.logout(request)
    return redirect(settings.LOGOUT_REDIRECT_URL)


@login_required
@never_cache
@require_http_methods(["GET", "POST"])
def tokens(request: HttpRequest) -> HttpResponse:
    """GET: the list and a form. POST: a new token, whose secret stands in this one answer and nowhere else."""
    form = TokenForm(request.POST or None)
    secret = None
    if request.method == "POST" and form.is_valid():
        with refusal_beside(form):
            _token, secret = actions.create_token(**form.cleaned_data, by=actor(request))
            form = TokenForm()
    context = {
        "tokens": [queries.token_row(token) for token in queries.tokens_of(actor(request).person)],
        "form": form,
        "new_token": secret,
        "api_example": f'curl -H "Authorization: Bearer $TOKEN" {settings.PORTAL_URL}/api/v1/me',
        "sees_all_tokens": policy.may_see_all_tokens(actor(request)) is None,
    }
    return render(request, "accounts/tokens.html", context, status=422 if form.is_bound else 200)


@login_required
@require_GET
def all_tokens(request: HttpRequest) -> HttpResponse:
    """For administrators: what a person has made, or everybody, to revoke it."""
    refuse_if(policy.may_see_all_tokens(actor(request)))
    owner = request.GET.get("owner", "").strip()
    page = page_of(queries.all_tokens(owner=owner), cursor=request.GET.get("cursor"))
    tokens = [queries.token_row(token) for token in page.items]
    context = {"tokens": tokens, "owner": owner, "next_cursor": page.next_cursor}
    return render(request, "accounts/all_tokens.html", context)


@login_required
@require_POST
def token_revoke(request: HttpRequest, prefix: str) -> HttpResponse:
    by = actor(request)
    token = actions.revoke_token(prefix, by=by)
    messages.success(request, f"The token {token.name} was revoked; it stops working at once.")
    return redirect("tokens" if token.user_id == by.user_id and not token.tenant else "all-tokens")
