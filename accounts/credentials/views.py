"""The user's own Account page: password, second factor, sessions."""

from __future__ import annotations

import base64
from typing import Any

from allauth.mfa.adapter import get_adapter as second_factor_adapter
from allauth.mfa.base.internal.flows import post_authentication
from allauth.mfa.models import Authenticator
from allauth.usersessions.models import UserSession
from django.contrib import messages
from django.contrib.auth import update_session_auth_hash
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from accounts.core.request_actor import actor
from accounts.core.second_factor import holds_second_factor, showed_second_factor
from accounts.credentials import actions as credential_actions
from accounts.credentials import queries
from accounts.credentials.authentication_records import signed_in_recently
from accounts.credentials.forms import CodeForm, EnrolForm, NewPasswordForm, form_status
from portal.web.client_address import client_address
from portal.web.refusals import refusal_in_form
from portal.web.safe_redirect import safe_redirect_target


@login_required
@never_cache
@require_http_methods(["GET"])
def account(request: HttpRequest) -> HttpResponse:
    return _account(request)


def _account(request: HttpRequest, *, status: int = 200, **forms: Any) -> HttpResponse:
    user = actor(request).person
    address = client_address(request)
    context = {
        "password_form": NewPasswordForm(user, address=address) if user.has_usable_password() else None,
        "code_form": CodeForm(None, user=user, address=address),
        "has_second_factor": holds_second_factor(user),
        "sessions": queries.sessions_of(user, this=request.session.session_key or ""),
    }
    return render(request, "accounts/credentials/account.html", context | forms, status=status)


@sensitive_post_parameters()
@login_required
@never_cache
@require_POST
def password_change(request: HttpRequest) -> HttpResponse:
    """This session continues under a new key; all others end."""
    by = actor(request)
    form = NewPasswordForm(by.person, request.POST, address=client_address(request))
    if not by.person.has_usable_password() or not form.is_valid():
        return _account(request, password_form=form, status=form_status(form))
    user = credential_actions.change_password(
        form.cleaned_data["new_password1"], keep=request.session.session_key or "", by=by
    )
    update_session_auth_hash(request, user)
    UserSession.objects.create_from_request(request)
    messages.success(request, "Your password was changed. All your other sessions were ended.")
    return redirect("account")


# ---- second factor -----------------------------------------------------------------------------------------------


@sensitive_post_parameters()
@login_required
@never_cache
@require_http_methods(["GET", "POST"])
def second_factor(request: HttpRequest) -> HttpResponse:
    """Adds a second factor, or asks for a code of the existing one, for pages that require it. Then goes to `next`."""
    user = actor(request).person
    go_on = _go_on(request)
    if not holds_second_factor(user):
        return _enrol(request, go_on)
    if showed_second_factor(request):
        return redirect(go_on)
    form = CodeForm(request.POST or None, user=user, address=client_address(request))
    if request.method == "POST" and form.is_valid():
        post_authentication(request, form.factor)
        return redirect(go_on)
    return render(
        request, "accounts/credentials/one_time_code.html", {"form": form, "next": go_on}, status=form_status(form)
    )


def _go_on(request: HttpRequest) -> str:
    return safe_redirect_target(request.POST.get("next") or request.GET.get("next"), otherwise=reverse("account"))


def _enrol(request: HttpRequest, go_on: str) -> HttpResponse:
    by = actor(request)
    if not credential_actions.has_second_factor_key():
        return render(request, "accounts/credentials/second_factor.html", {"has_key": False})
    seed = credential_actions.pending_totp_seed(by.person, request.session.session_key or "")
    form = EnrolForm(
        request.POST or None,
        user=by.person,
        address=client_address(request),
        seed=seed,
        is_fresh=signed_in_recently(request),
    )
    if request.method == "POST" and form.is_valid():
        with refusal_in_form(form):
            factor, codes = credential_actions.add_second_factor(seed, step=form.step, by=by)
            post_authentication(request, factor)
            return render(
                request, "accounts/credentials/recovery_codes.html", {"codes": "\n".join(codes), "next": go_on}
            )
    url = second_factor_adapter().build_totp_url(by.person, seed)
    picture = base64.b64encode(second_factor_adapter().build_totp_svg(url).encode()).decode()
    typed = " ".join(seed[at : at + 4] for at in range(0, len(seed), 4))
    context = {"has_key": True, "form": form, "picture": picture, "seed": typed, "next": go_on}
    return render(request, "accounts/credentials/second_factor.html", context, status=form_status(form))


@login_required
@never_cache
@require_POST
def second_factor_remove(request: HttpRequest) -> HttpResponse:
    form = CodeForm(request.POST, user=actor(request).person, address=client_address(request))
    if not form.is_valid():
        return _account(request, code_form=form, status=form_status(form))
    credential_actions.remove_second_factor(by=actor(request))
    messages.success(request, "Your second factor was removed. Sign-in no longer requires a code.")
    return redirect("account")


@login_required
@never_cache
@require_POST
def recovery_codes(request: HttpRequest) -> HttpResponse:
    """Creates new recovery codes. They are in this response only."""
    form = CodeForm(request.POST, user=actor(request).person, address=client_address(request))
    if not form.is_valid():
        return _account(request, code_form=form, status=form_status(form))
    codes = credential_actions.renew_recovery_codes(by=actor(request))
    if form.factor.type == Authenticator.Type.TOTP:
        post_authentication(request, form.factor)
    return render(
        request, "accounts/credentials/recovery_codes.html", {"codes": "\n".join(codes), "next": _go_on(request)}
    )


# ---- sessions ----------------------------------------------------------------------------------------------------


@login_required
@require_POST
def session_end(request: HttpRequest, pk: int) -> HttpResponse:
    credential_actions.end_session(pk, by=actor(request))
    messages.success(request, "The session was ended.")
    return redirect("account")


@login_required
@require_POST
def sessions_end(request: HttpRequest) -> HttpResponse:
    ended = credential_actions.end_other_sessions(keep=request.session.session_key or "", by=actor(request))
    what = {0: "There were no other sessions.", 1: "1 other session was ended."}
    messages.success(request, what.get(ended, f"{ended} other sessions were ended."))
    return redirect("account")
