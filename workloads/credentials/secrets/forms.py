"""The form that puts a secret; its value is never shown again."""

from __future__ import annotations

from django import forms

from accounts.rest.strict.forms import StrictForm
from workloads.core.environment import ENV_NAME_LIMIT
from workloads.core.forms import VERBATIM_INPUT
from workloads.credentials.secrets import policy as secret_policy


class SecretForm(StrictForm):
    name = forms.CharField(
        max_length=ENV_NAME_LIMIT,
        help_text="Name of the variable, for example WANDB_API_KEY. An existing secret gets the new value.",
        widget=forms.TextInput(attrs=VERBATIM_INPUT),
    )
    value = forms.CharField(
        strip=False,
        max_length=secret_policy.VALUE_LIMIT,
        help_text="Never shown again. Use the API for values with several lines.",
        widget=forms.PasswordInput(render_value=False, attrs={"autocomplete": "off"}),
    )
