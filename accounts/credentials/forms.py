"""Forms for passwords and codes. They refuse attempts that come too fast."""

from __future__ import annotations

from typing import Any

import structlog
from allauth.mfa.models import Authenticator
from django import forms
from django.contrib.auth.forms import PasswordChangeForm
from django.contrib.auth.password_validation import password_validators_help_texts
from django.core.exceptions import ValidationError

from accounts.credentials import actions as credential_actions
from accounts.credentials import login_backoff
from accounts.models import User

log = structlog.get_logger(__name__)
TOO_FAST = "too_fast"
TOO_FAST_SENTENCE = "Too many attempts for this account. Try again in {wait_s} s."
WRONG_CODE = "The code is wrong or already used. Enter the current code from your app."
SIGN_IN_AGAIN = "Sign out and sign in again first. A second factor can be added only within 15 minutes after sign-in."
CODE_ATTRIBUTES = {"autocomplete": "one-time-code", "autocapitalize": "none", "spellcheck": "false"}


class CodeForm(forms.Form):
    """A valid form has consumed the code; `factor` is the factor of the code."""

    factor: Authenticator
    code = forms.CharField(max_length=40, widget=forms.TextInput(attrs=CODE_ATTRIBUTES))

    def __init__(self, data: Any, *, user: User, address: str) -> None:
        super().__init__(data)
        self.user, self.address = user, address

    def clean_code(self) -> str:
        not_too_fast(self.user.email, self.address, at="code")
        code: str = self.cleaned_data["code"]
        found = credential_actions.consume_code(self.user, code) if self.user.is_active else None
        if found is None:
            log.info("second_factor_failed", email=self.user.email, address=self.address)
            raise ValidationError(WRONG_CODE)
        login_backoff.reset_backoff(self.user.email, self.address, at="code")
        self.factor = found
        return code


class EnrolForm(forms.Form):
    """`step`: time step of the code that proves that the app has `seed`. `is_fresh`: the user has just signed in, which
    is required of users without a password.
    """

    step: int
    password = forms.CharField(
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password"}), label="Your password", strip=False
    )
    code = forms.CharField(max_length=40, widget=forms.TextInput(attrs=CODE_ATTRIBUTES), label="Code from the app")

    def __init__(self, data: Any, *, user: User, address: str, seed: str, is_fresh: bool) -> None:
        super().__init__(data)
        self.user, self.address, self.seed, self.is_fresh = user, address, seed, is_fresh
        if not user.has_usable_password():
            del self.fields["password"]

    def clean(self) -> dict[str, Any] | None:
        if "password" not in self.fields and not self.is_fresh:
            raise ValidationError(SIGN_IN_AGAIN)
        return super().clean()

    def clean_password(self) -> str:
        return right_password(self.user, self.cleaned_data["password"], self.address)

    def clean_code(self) -> str:
        code: str = self.cleaned_data["code"]
        step = credential_actions.totp_step_of(self.seed, code)
        if step is None:
            raise ValidationError(WRONG_CODE)
        self.step = step
        return code


class NewPasswordForm(PasswordChangeForm):
    def __init__(self, user: User, data: Any = None, *, address: str) -> None:
        super().__init__(user, data)
        self.address = address
        self.fields["old_password"].widget.attrs["autofocus"] = False
        show_password_rules(self, "new_password1", "new_password2")

    def clean_old_password(self) -> str:
        return right_password(self.user, self.cleaned_data["old_password"], self.address)


def show_password_rules(form: forms.Form, new: str, again: str) -> None:
    """Shows the password rules once, as text instead of Django's list."""
    form.fields[new].help_text = " ".join(password_validators_help_texts())
    form.fields[again].help_text = ""


def right_password(user: User, typed: str, address: str) -> str:
    """Asks for the password again, for actions that a person at an unattended screen must not be able to do."""
    not_too_fast(user.email, address, at="password")
    if not user.check_password(typed):
        log.info("password_again_failed", email=user.email, address=address)
        raise ValidationError("The password is wrong.")
    login_backoff.reset_backoff(user.email, address)
    return typed


def not_too_fast(email: str, address: str, *, at: str) -> None:
    wait_s = login_backoff.wait_before_attempt(email, address, at=at)
    if wait_s:
        raise ValidationError(TOO_FAST_SENTENCE.format(wait_s=wait_s), code=TOO_FAST)


def form_status(form: forms.BaseForm) -> int:
    if not form.is_bound:
        return 200
    codes = {error.code for errors in form.errors.as_data().values() for error in errors}
    return 429 if TOO_FAST in codes else 422
