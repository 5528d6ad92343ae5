"""The form that sets a new password with a code, for users who have none or have lost it."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib.auth.forms import SetPasswordMixin

from accounts.account_setup import actions as account_setup_actions
from accounts.credentials import login_backoff
from accounts.credentials.forms import CODE_ATTRIBUTES, log, not_too_fast, show_password_rules
from accounts.models import User
from accounts.people.policy import ADDRESS_MAX, RolesLentTo

WRONG_PASSWORD_CODE = (
    "The code is wrong for this address, already used, older than {days} days, or its administrator may no longer "
    "create it. Ask an administrator for a new code."
)


class PasswordCodeForm(SetPasswordMixin, forms.Form):
    """Sets a password without the old one. In a valid form, `user` is the user of the code."""

    user: User
    email = forms.EmailField(
        max_length=ADDRESS_MAX, label="Email address", widget=forms.EmailInput(attrs={"autocomplete": "username"})
    )
    code = forms.CharField(max_length=100, widget=forms.TextInput(attrs=CODE_ATTRIBUTES), label="Code")
    password1, password2 = SetPasswordMixin.create_password_fields("New password", "Confirm new password")

    def __init__(self, data: Any, *, address: str, lent_to: RolesLentTo) -> None:
        super().__init__(data)
        self.address, self.lent_to = address, lent_to
        show_password_rules(self, "password1", "password2")

    def clean(self) -> dict[str, Any]:
        typed: dict[str, Any] = super().clean() or {}
        self.validate_passwords()
        if "email" not in typed or "code" not in typed:
            return typed
        not_too_fast(typed["email"], self.address, at="password-code")
        found = account_setup_actions.user_of_password_code(typed["email"], typed["code"], lent_to=self.lent_to)
        if found is None:
            log.info("password_code_failed", email=typed["email"], address=self.address)
            self.add_error("code", WRONG_PASSWORD_CODE.format(days=account_setup_actions.CODE_DAYS))
            return typed
        login_backoff.reset_backoff(typed["email"], self.address, at="password-code")
        self.user = found
        self.validate_password_for_user(found, "password1")
        return typed
