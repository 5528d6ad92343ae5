"""The page on which a code sets a password."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from accounts.account_setup import actions as account_setup_actions
from accounts.account_setup.forms import WRONG_PASSWORD_CODE, PasswordCodeForm
from accounts.core.actor import Actor
from accounts.credentials.forms import form_status
from accounts.people.policy import RolesLentTo
from portal.web.client_address import client_address


@sensitive_post_parameters()
@never_cache
@require_http_methods(["GET", "POST"])
def password_code(request: HttpRequest, lent_to: RolesLentTo) -> HttpResponse:
    """For users with a code from an administrator. They sign in afterwards, with a second factor if they have one."""
    form = PasswordCodeForm(request.POST or None, address=client_address(request), lent_to=lent_to)
    if request.method == "POST" and form.is_valid():
        by = Actor(form.user, "page", request_id=getattr(request, "request_id", ""))
        if account_setup_actions.set_password_with_code(
            form.cleaned_data["code"], form.cleaned_data["password1"], lent_to=lent_to, by=by
        ):
            messages.success(request, "Your password is set. Sign in with it.")
            return redirect("login")
        form.add_error("code", WRONG_PASSWORD_CODE.format(days=account_setup_actions.CODE_DAYS))
    return render(request, "accounts/account_setup/password_code.html", {"form": form}, status=form_status(form))
