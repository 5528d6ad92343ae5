"""Shapes of what people type. What is allowed is said by the action."""

from __future__ import annotations

import re
from typing import Any

import structlog
from allauth.mfa.models import Authenticator
from django import forms
from django.contrib.auth.forms import AuthenticationForm, PasswordChangeForm, SetPasswordMixin
from django.contrib.auth.password_validation import password_validators_help_texts
from django.core.exceptions import ValidationError

from accounts import signing, slow_down, welcome
from accounts.edge import client_address
from accounts.models import Scope, User
from accounts.policy import ADDRESS_MAX, scopes_for

log = structlog.get_logger(__name__)
TOO_FAST = "too_fast"
TOO_FAST_SENTENCE = "Too many attempts for this account from your address. Try again in {wait_s} s."
WRONG_PASSWORD_CODE = (
    "This code does not belong to this address, was used, or is older than {days} days. Ask an administrator."
)
WRONG_CODE = "This code is not right, or was used before. Type the one that your app shows now."
ADDRESS = re.compile(r"[^@\s]+@[^@\s]+")
NO_ADDRESS = "This is no e-mail address. Type yours, for example alice@example.org."
SIGN_IN_AGAIN = "Sign out and in again first: a second factor is added within 15 minutes after that."
CODE_ATTRIBUTES = {"autocomplete": "one-time-code", "autocapitalize": "none", "spellcheck": "false"}
SCOPES = [(scope.value, scope.label.capitalize()) for scope in Scope]
DAYS = [(30, "30 days"), (90, "90 days"), (365, "1 year")]


class SignInForm(AuthenticationForm):
    error_messages = {
        "invalid_login": "E-mail address and password do not match, or the account is suspended.",
        "inactive": "E-mail address and password do not match, or the account is suspended.",
    }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["username"].label = "E-mail address"
        self.fields["username"].widget.attrs.update(autocomplete="username", inputmode="email")

    def clean_username(self) -> str:
        """What is no address may be the password, typed one field too early: it is neither logged nor shown again."""
        typed: str = self.cleaned_data["username"]
        if not ADDRESS.fullmatch(typed):
            self.data = {**self.data, "username": ""}
            raise ValidationError(NO_ADDRESS)
        return typed

    def clean(self) -> dict[str, Any]:
        """Too fast: refused without looking at the password; whether it was right is what a guesser wants to know."""
        assert self.request is not None
        wait_s = slow_down.wait_before_attempt(self.cleaned_data.get("username", ""), client_address(self.request))
        if wait_s:
            raise ValidationError(TOO_FAST_SENTENCE.format(wait_s=wait_s), code=TOO_FAST)
        return super().clean()


class CodeForm(forms.Form):
    """A valid one has used the code up: `factor` is what it proved."""

    factor: Authenticator
    code = forms.CharField(max_length=40, widget=forms.TextInput(attrs=CODE_ATTRIBUTES))

    def __init__(self, data: Any, *, user: User, address: str) -> None:
        super().__init__(data)
        self.user, self.address = user, address

    def clean_code(self) -> str:
        not_too_fast(self.user.email, self.address, at="code")
        code: str = self.cleaned_data["code"]
        found = signing.use_code(self.user, code) if self.user.is_active else None
        if found is None:
            log.info("second_factor_failed", email=self.user.email, address=self.address)
            raise ValidationError(WRONG_CODE)
        slow_down.forget(self.user.email, self.address, at="code")
        self.factor = found
        return code


class EnrolForm(forms.Form):
    """`step`: of the code that shows that the app knows `seed`. `is_fresh`: signed in a moment ago, which is asked of
    who has no password.
    """

    step: int
    password = forms.CharField(
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password"}), label="Your password", strip=False
    )
    code = forms.CharField(max_length=40, widget=forms.TextInput(attrs=CODE_ATTRIBUTES), label="Code in the app")

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
        step = signing.step_of(self.seed, code)
        if step is None:
            raise ValidationError(WRONG_CODE)
        self.step = step
        return code


class NewPasswordForm(PasswordChangeForm):
    def __init__(self, user: User, data: Any = None, *, address: str) -> None:
        super().__init__(user, data)
        self.address = address
        self.fields["old_password"].widget.attrs["autofocus"] = False
        _explain(self, "new_password1", "new_password2")

    def clean_old_password(self) -> str:
        return right_password(self.user, self.cleaned_data["old_password"], self.address)


class PasswordCodeForm(SetPasswordMixin, forms.Form):
    """A password without the one before: a valid one has found in `user` whose code it is."""

    user: User
    email = forms.EmailField(
        max_length=ADDRESS_MAX, label="E-mail address", widget=forms.EmailInput(attrs={"autocomplete": "username"})
    )
    code = forms.CharField(max_length=100, widget=forms.TextInput(attrs=CODE_ATTRIBUTES), label="Code")
    password1, password2 = SetPasswordMixin.create_password_fields("New password", "New password again")

    def __init__(self, data: Any, *, address: str) -> None:
        super().__init__(data)
        self.address = address
        _explain(self, "password1", "password2")

    def clean(self) -> dict[str, Any]:
        typed: dict[str, Any] = super().clean() or {}
        self.validate_passwords()
        if "email" not in typed or "code" not in typed:
            return typed
        not_too_fast(typed["email"], self.address, at="password-code")
        found = welcome.whose_code(typed["email"], typed["code"])
        if found is None:
            log.info("password_code_failed", email=typed["email"], address=self.address)
            self.add_error("code", WRONG_PASSWORD_CODE.format(days=welcome.CODE_DAYS))
            return typed
        slow_down.forget(typed["email"], self.address, at="password-code")
        self.user = found
        self.validate_password_for_user(found, "password1")
        return typed


def _explain(form: forms.Form, new: str, again: str) -> None:
    """As one text instead of Django's list, and once."""
    form.fields[new].help_text = " ".join(password_validators_help_texts())
    form.fields[again].help_text = ""


def right_password(user: User, typed: str, address: str) -> str:
    """For what somebody before an unlocked screen must not do."""
    not_too_fast(user.email, address, at="password")
    if not user.check_password(typed):
        log.info("password_again_failed", email=user.email, address=address)
        raise ValidationError("This is not your password.")
    slow_down.forget(user.email, address)
    return typed


def not_too_fast(email: str, address: str, *, at: str) -> None:
    wait_s = slow_down.wait_before_attempt(email, address, at=at)
    if wait_s:
        raise ValidationError(TOO_FAST_SENTENCE.format(wait_s=wait_s), code=TOO_FAST)


def status_of(form: forms.BaseForm) -> int:
    if not form.is_bound:
        return 200
    codes = {error.code for errors in form.errors.as_data().values() for error in errors}
    return 429 if TOO_FAST in codes else 422


class TokenForm(forms.Form):
    """`tenant`: of a team's token."""

    name = forms.CharField(max_length=60, help_text="Where you will use it, for example: nightly CI")
    scopes = forms.MultipleChoiceField(
        choices=SCOPES,
        widget=forms.CheckboxSelectMultiple,
        initial=[Scope.READ],
    )
    expires_in_days = forms.TypedChoiceField(choices=DAYS, coerce=int, initial=90, label="Valid for")

    def __init__(self, *args: Any, tenant: str = "", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        possible = scopes_for(tenant)
        scopes = self.fields["scopes"]
        assert isinstance(scopes, forms.MultipleChoiceField)
        scopes.choices = [(key, label) for key, label in SCOPES if key in possible]
