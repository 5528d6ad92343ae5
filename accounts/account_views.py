"""The page of one's own account: password, second factor, sessions; and the second step of signing in."""

from __future__ import annotations

import base64
from typing import Any

from allauth.account.internal.decorators import login_stage_required
from allauth.mfa.adapter import get_adapter as second_factor_adapter
from allauth.mfa.base.internal.flows import post_authentication
from allauth.mfa.models import Authenticator
from allauth.mfa.stages import AuthenticateStage
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

from accounts import queries, signing, welcome
from accounts.actor import Actor
from accounts.edge import actor, client_address, showed_second_factor, signed_in_lately
from accounts.forms import WRONG_PASSWORD_CODE, CodeForm, EnrolForm, NewPasswordForm, PasswordCodeForm, status_of
from portal.errors import refusal_beside
from portal.way_back import way_back


@sensitive_post_parameters("code")
@login_stage_required(stage=AuthenticateStage.key, redirect_urlname="login")
@require_http_methods(["GET", "POST"])
def sign_in_code(request: HttpRequest) -> HttpResponse:
    """Between the password and being signed in, for who has a second factor."""
    stage = request._login_stage  # type: ignore[attr-defined]
    form = CodeForm(request.POST or None, user=stage.login.user, address=client_address(request))
    if request.method == "POST" and form.is_valid():
        post_authentication(request, form.factor)
        done: HttpResponse = stage.exit()
        return done
    return render(request, "accounts/code.html", {"form": form}, status=status_of(form))


@sensitive_post_parameters()
@never_cache
@require_http_methods(["GET", "POST"])
def password_code(request: HttpRequest) -> HttpResponse:
    """For who has a code of an administrator. Signing in comes after it, with any second factor."""
    form = PasswordCodeForm(request.POST or None, address=client_address(request))
    if request.method == "POST" and form.is_valid():
        by = Actor(form.user, "page", request_id=getattr(request, "request_id", ""))
        if welcome.set_password(form.cleaned_data["code"], form.cleaned_data["password1"], by=by):
            messages.success(request, "Your password is set. Sign in with it.")
            return redirect("login")
        form.add_error("code", WRONG_PASSWORD_CODE.format(days=welcome.CODE_DAYS))
    return render(request, "accounts/password_code.html", {"form": form}, status=status_of(form))


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
        "has_second_factor": queries.holds_second_factor(user),
        "sessions": queries.sessions_of(user, this=request.session.session_key or ""),
    }
    return render(request, "accounts/account.html", context | forms, status=status)


@sensitive_post_parameters()
@login_required
@never_cache
@require_POST
def password_change(request: HttpRequest) -> HttpResponse:
    """This session goes on under a new key; all others end."""
    by = actor(request)
    form = NewPasswordForm(by.person, request.POST, address=client_address(request))
    if not by.person.has_usable_password() or not form.is_valid():
        return _account(request, password_form=form, status=status_of(form))
    user = signing.change_password(form.cleaned_data["new_password1"], keep=request.session.session_key or "", by=by)
    update_session_auth_hash(request, user)
    UserSession.objects.create_from_request(request)
    messages.success(request, "Your password was changed; all your other sessions have ended.")
    return redirect("account")


# ---- second factor -----------------------------------------------------------------------------------------------


@sensitive_post_parameters()
@login_required
@never_cache
@require_http_methods(["GET", "POST"])
def second_factor(request: HttpRequest) -> HttpResponse:
    """Add one, or show the one that is there, for what demands it. Then on to `next`."""
    user = actor(request).person
    go_on = _go_on(request)
    if not queries.holds_second_factor(user):
        return _enrol(request, go_on)
    if showed_second_factor(request):
        return redirect(go_on)
    form = CodeForm(request.POST or None, user=user, address=client_address(request))
    if request.method == "POST" and form.is_valid():
        post_authentication(request, form.factor)
        return redirect(go_on)
    return render(request, "accounts/code.html", {"form": form, "next": go_on}, status=status_of(form))


def _go_on(request: HttpRequest) -> str:
    return way_back(request.POST.get("next") or request.GET.get("next"), otherwise=reverse("account"))


def _enrol(request: HttpRequest, go_on: str) -> HttpResponse:
    by = actor(request)
    if not signing.can_seal():
        return render(request, "accounts/second_factor.html", {"has_key": False})
    seed = signing.pending_seed(by.person, request.session.session_key or "")
    form = EnrolForm(
        request.POST or None,
        user=by.person,
        address=client_address(request),
        seed=seed,
        is_fresh=signed_in_lately(request),
    )
    if request.method == "POST" and form.is_valid():
        with refusal_beside(form):
            factor, codes = signing.add_second_factor(seed, step=form.step, by=by)
            post_authentication(request, factor)
            return render(request, "accounts/recovery_codes.html", {"codes": "\n".join(codes), "next": go_on})
    url = second_factor_adapter().build_totp_url(by.person, seed)
    picture = base64.b64encode(second_factor_adapter().build_totp_svg(url).encode()).decode()
    typed = " ".join(seed[at : at + 4] for at in range(0, len(seed), 4))
    context = {"has_key": True, "form": form, "picture": picture, "seed": typed, "next": go_on}
    return render(request, "accounts/second_factor.html", context, status=status_of(form))


@login_required
@never_cache
@require_POST
def second_factor_remove(request: HttpRequest) -> HttpResponse:
    form = CodeForm(request.POST, user=actor(request).person, address=client_address(request))
    if not form.is_valid():
        return _account(request, code_form=form, status=status_of(form))
    signing.remove_second_factor(by=actor(request))
    messages.success(request, "Your second factor was removed; signing in asks for no code any more.")
    return redirect("account")


@login_required
@never_cache
@require_POST
def recovery_codes(request: HttpRequest) -> HttpResponse:
    """New ones, which stand in this one answer and nowhere else."""
    form = CodeForm(request.POST, user=actor(request).person, address=client_address(request))
    if not form.is_valid():
        return _account(request, code_form=form, status=status_of(form))
    codes = signing.renew_recovery_codes(by=actor(request))
    if form.factor.type == Authenticator.Type.TOTP:
        post_authentication(request, form.factor)
    return render(request, "accounts/recovery_codes.html", {"codes": "\n".join(codes), "next": _go_on(request)})


# ---- sessions ----------------------------------------------------------------------------------------------------


@login_required
@require_POST
def session_end(request: HttpRequest, pk: int) -> HttpResponse:
    signing.end_session(pk, by=actor(request))
    messages.success(request, "The session has ended.")
    return redirect("account")


@login_required
@require_POST
def sessions_end(request: HttpRequest) -> HttpResponse:
    ended = signing.end_other_sessions(keep=request.session.session_key or "", by=actor(request))
    what = {0: "There was no other session.", 1: "One other session has ended."}
    messages.success(request, what.get(ended, f"{ended} other sessions have ended."))
    return redirect("account")
