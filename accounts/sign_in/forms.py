"""The form for email and password. It refuses attempts that come too fast."""

from __future__ import annotations

import re
from typing import Any

from django.contrib.auth.forms import AuthenticationForm
from django.core.exceptions import ValidationError

from accounts.credentials import login_backoff
from accounts.credentials.forms import TOO_FAST, TOO_FAST_SENTENCE
from portal.web.client_address import client_address

ADDRESS = re.compile(r"[^@\s]+@[^@\s]+")

NO_ADDRESS = "This is not an email address. Enter your address, for example alice@example.org."


class SignInForm(AuthenticationForm):
    error_messages = {
        "invalid_login": "Email address and password do not match, or the account is suspended.",
        "inactive": "Email address and password do not match, or the account is suspended.",
    }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["username"].label = "Email address"
        self.fields["username"].widget.attrs.update(autocomplete="username", inputmode="email")

    def clean_username(self) -> str:
        """Text that is not an email may be a password in the wrong field: it is neither logged nor shown again."""
        typed: str = self.cleaned_data["username"]
        if not ADDRESS.fullmatch(typed):
            self.data = {**self.data, "username": ""}
            raise ValidationError(NO_ADDRESS)
        return typed

    def clean(self) -> dict[str, Any]:
        """Refuses an attempt that comes too fast without checking the password, so that a guesser learns nothing."""
        assert self.request is not None
        wait_s = login_backoff.wait_before_attempt(self.cleaned_data.get("username", ""), client_address(self.request))
        if wait_s:
            raise ValidationError(TOO_FAST_SENTENCE.format(wait_s=wait_s), code=TOO_FAST)
        return super().clean()
