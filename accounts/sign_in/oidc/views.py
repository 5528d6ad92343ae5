"""Sign-in by the configured issuer: redirect to it, and its callback. The rest is as for sign-in by password."""

from __future__ import annotations

from collections.abc import Callable, Collection

import structlog
from allauth.account.internal.flows.login import record_authentication
from allauth.account.utils import perform_login
from django.conf import settings
from django.contrib.sessions.backends.base import UpdateError
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_GET, require_POST

from accounts.credentials.authentication_records import BY_ISSUER
from accounts.models import User
from accounts.sign_in.forms import SignInForm
from accounts.sign_in.oidc import actions as oidc_actions
from accounts.sign_in.oidc import client
from accounts.sign_in.oidc.protocol import (
    SIGN_IN_LASTS_S,
    IdentityClaims,
    PendingSignIn,
    SignInRejected,
    authorization_url,
    verified_claims,
)
from portal.core.single_sign_on import SingleSignOn
from portal.web.client_address import client_address
from portal.web.safe_redirect import safe_redirect_target

log = structlog.get_logger(__name__)
PENDING = "oidc"
CODE_MAX = 4096


@require_POST
@never_cache
def begin(request: HttpRequest) -> HttpResponse:
    """Renders a page that continues automatically, not a redirect: browsers apply `form-action` of our CSP to redirects
    of a form, and an issuer may redirect to addresses that only it knows.
    """
    sso = _chosen()
    if request.user.is_authenticated:
        return redirect(settings.LOGIN_REDIRECT_URL)
    pending = PendingSignIn(
        go_on=safe_redirect_target(request.POST.get("next"), otherwise=reverse(settings.LOGIN_REDIRECT_URL))
    )
    try:
        there = authorization_url(pending, client.discover_endpoints(sso), sso, back=_back())
    except SignInRejected as error:
        return _refused(request, sso, error)
    request.session[PENDING] = pending.as_json()
    return render(request, "accounts/sign_in/oidc/oidc_redirect.html", {"url": there, "name": sso.name})


@require_GET
@never_cache
def back(request: HttpRequest, settle: Callable[[User, Collection[str]], None]) -> HttpResponse:
    """`settle` gives and removes the roles that follow from the user's groups, before the first page is shown."""
    sso = _chosen()
    if request.user.is_authenticated:
        return redirect(settings.LOGIN_REDIRECT_URL)
    try:
        pending = _taken(request)
        user, groups = _known(_proved(request, pending, sso))
    except SignInRejected as error:
        return _refused(request, sso, error)
    settle(user, groups)
    record_authentication(request, user, method=BY_ISSUER)
    response: HttpResponse = perform_login(request, user, redirect_url=pending.go_on)
    return response


def _known(claims: IdentityClaims) -> tuple[User, Collection[str]]:
    return oidc_actions.account_of(claims), claims.groups


@sensitive_variables()
def _proved(request: HttpRequest, pending: PendingSignIn, sso: SingleSignOn) -> IdentityClaims:
    if error := request.GET.get("error"):
        raise SignInRejected("issuer_refused", error=ascii(error)[:80])
    if request.GET.get("iss", sso.issuer) != sso.issuer:
        raise SignInRejected("answer_of_another_issuer")
    code = request.GET.get("code", "")
    if not 0 < len(code) <= CODE_MAX:
        raise SignInRejected("no_code")
    at = client.discover_endpoints(sso)
    id_token = client.fetch_id_token(code, at, sso, verifier=pending.verifier, back=_back())
    return verified_claims(id_token, client.fetch_keys(at, sso), pending, sso)


def _taken(request: HttpRequest) -> PendingSignIn:
    """Removes the pending sign-in from the session and returns it, so that it is used once even if it then fails. A
    callback without a matching sign-in changes nothing.
    """
    kept = request.session.get(PENDING)
    pending = PendingSignIn(**kept) if kept else None
    if pending is None or not pending.is_answered_by(request.GET.get("state", "")):
        raise SignInRejected("state")
    del request.session[PENDING]
    try:
        request.session.save()
    except UpdateError as error:  # the session has ended meanwhile
        raise SignInRejected("state") from error
    if pending.is_over():
        raise SignInRejected("sign_in_too_old", seconds_at_most=SIGN_IN_LASTS_S)
    return pending


def _chosen() -> SingleSignOn:
    if settings.OIDC is None:
        raise Http404
    sso: SingleSignOn = settings.OIDC
    return sso


def _back() -> str:
    """Not built from the request: the issuer knows exactly one callback URL of the portal."""
    return f"{settings.PORTAL_URL}{reverse('oidc-back')}"


def _refused(request: HttpRequest, sso: SingleSignOn, error: SignInRejected) -> HttpResponse:
    """The reason is only in the log, so that users learn nothing about the issuer and about accounts."""
    log.warning("oidc_refused", reason=error.reason, address=client_address(request), **error.facts)
    context = {"form": SignInForm(request), "next": "", "issuer_name": sso.name, "is_refused": True}
    return render(request, "accounts/sign_in/login.html", context, status=403)
