"""The form for a new token."""

from __future__ import annotations

from typing import Any

from django import forms

from accounts.api_tokens.policy import scopes_for
from accounts.models import Scope

SCOPES = [(scope.value, scope.label.capitalize()) for scope in Scope]

DAYS = [(30, "30 days"), (90, "90 days"), (365, "1 year")]


class TokenForm(forms.Form):
    """`tenant`: the team's slug, for a team's token."""

    name = forms.CharField(max_length=60, help_text="Where it is used, for example: nightly CI")
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
