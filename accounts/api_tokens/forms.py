"""The form for a new token."""

from __future__ import annotations

from typing import Any

from django import forms
from django.core.exceptions import ValidationError

from accounts.api_tokens.policy import SECOND_FACTOR_FOR_SCOPE, scopes_for
from accounts.models import Scope

SCOPES = [(scope.value, scope.label.capitalize()) for scope in Scope]

DAYS = [(30, "30 days"), (90, "90 days"), (365, "1 year")]


class TokenForm(forms.Form):
    """`tenant`: the team's slug, for a team's token. `has_second_factor`: whether this session has passed one."""

    name = forms.CharField(max_length=60, help_text="Where it is used, for example: nightly CI")
    scopes = forms.MultipleChoiceField(
        choices=SCOPES,
        widget=forms.CheckboxSelectMultiple,
        initial=[Scope.READ],
    )
    expires_in_days = forms.TypedChoiceField(choices=DAYS, coerce=int, initial=90, label="Valid for")

    def __init__(self, *args: Any, has_second_factor: bool, tenant: str = "", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.has_second_factor = has_second_factor
        possible = scopes_for(tenant)
        scopes = self.fields["scopes"]
        assert isinstance(scopes, forms.MultipleChoiceField)
        scopes.choices = [(key, label) for key, label in SCOPES if key in possible]

    def clean_scopes(self) -> list[str]:
        scopes: list[str] = self.cleaned_data["scopes"]
        if Scope.ADMIN in scopes and not self.has_second_factor:
            raise ValidationError(SECOND_FACTOR_FOR_SCOPE.message, code=SECOND_FACTOR_FOR_SCOPE.code)
        return scopes
