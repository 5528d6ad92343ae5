"""Shapes of what people type. What is allowed is said by the action."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib.auth.forms import AuthenticationForm
from django.core.exceptions import ValidationError

from accounts import slow_down
from accounts.edge import client_address
from accounts.models import Scope

DAYS = [(30, "30 days"), (90, "90 days"), (365, "1 year")]


class SignInForm(AuthenticationForm):
    TOO_FAST = "too_fast"
    error_messages = {
        "invalid_login": "E-mail address and password do not match, or the account is suspended.",
        "inactive": "E-mail address and password do not match, or the account is suspended.",
    }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["username"].label = "E-mail address"
        self.fields["username"].widget.attrs.update(autocomplete="username", inputmode="email")

    def clean(self) -> dict[str, Any]:
        """Too fast: refused without looking at the password; whether it was right is what a guesser wants to know."""
        assert self.request is not None
        wait_s = slow_down.wait_before_attempt(self.cleaned_data.get("username", ""), client_address(self.request))
        if wait_s:
            sentence = f"Too many attempts for this account from your address. Try again in {wait_s} s."
            raise ValidationError(sentence, code=self.TOO_FAST)
        return super().clean()


class TokenForm(forms.Form):
    name = forms.CharField(max_length=60, help_text="Where you will use it, for example: nightly CI")
    scopes = forms.MultipleChoiceField(
        choices=[(scope.value, scope.label.capitalize()) for scope in Scope],
        widget=forms.CheckboxSelectMultiple,
        initial=[Scope.READ],
    )
    expires_in_days = forms.TypedChoiceField(choices=DAYS, coerce=int, initial=90, label="Valid for")
