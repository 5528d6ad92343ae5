"""Pages to sign in, with the second step, and to sign out."""

from __future__ import annotations

from typing import Any

import structlog
from allauth.account.internal.decorators import login_stage_required
from allauth.account.internal.flows.login import record_authentication
from allauth.account.utils import perform_login
from allauth.mfa.base.internal.flows import post_authentication
from allauth.mfa.stages import AuthenticateStage
from django.conf import settings
from django.contrib import auth
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.middleware.csrf import get_token
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from accounts.core.request_actor import actor
from accounts.credentials import login_backoff
from accounts.credentials.forms import CodeForm, form_status
from accounts.sign_in import actions
from accounts.sign_in.forms import SignInForm
from portal.web.client_address import client_address
from portal.web.safe_redirect import portal_hosts

log = structlog.get_logger(__name__)


class Login(LoginView):
    template_name = "accounts/sign_in/login.html"
    authentication_form = SignInForm
    redirect_authenticated_user = True

    def get_success_url_allowed_hosts(self, request: HttpRequest | None = None) -> set[str]:
        return portal_hosts()

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        """Signs in or continues to the second factor. accounts/sign_in/adapters.py records it after the last step."""
        login_backoff.reset_backoff(form.cleaned_data["username"], client_address(self.request))
        user = form.get_user()
        record_authentication(self.request, user, method="password")
        response: HttpResponse = perform_login(self.request, user, redirect_url=self.get_success_url())
        return response

    def form_invalid(self, form: AuthenticationForm) -> HttpResponse:
        log.info("sign_in_failed", email=form.data.get("username", "")[:254], address=client_address(self.request))
        response = super().form_invalid(form)
        response.status_code = form_status(form)
        return response

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(**kwargs, issuer_name=settings.OIDC.name if settings.OIDC else "")


@require_GET
@never_cache
def session(request: HttpRequest) -> JsonResponse:
    """Whose session this browser has, and the token for its forms: a page asks before it sends what somebody typed, and
    after a sign-in in another tab, which changes the token.
    """
    return JsonResponse({"user": request.user.pk, "csrf": get_token(request)})


@require_POST
def logout(request: HttpRequest) -> HttpResponse:
    if request.user.is_authenticated:
        actions.signed_out(by=actor(request))
    auth.logout(request)
    return redirect(settings.LOGOUT_REDIRECT_URL)


@sensitive_post_parameters("code")
@login_stage_required(stage=AuthenticateStage.key, redirect_urlname="login")
@require_http_methods(["GET", "POST"])
def sign_in_code(request: HttpRequest) -> HttpResponse:
    """The step after the password, for users with a second factor."""
    stage = request._login_stage  # type: ignore[attr-defined]
    form = CodeForm(request.POST or None, user=stage.login.user, address=client_address(request))
    if request.method == "POST" and form.is_valid():
        post_authentication(request, form.factor)
        done: HttpResponse = stage.exit()
        return done
    return render(request, "accounts/credentials/one_time_code.html", {"form": form}, status=form_status(form))
