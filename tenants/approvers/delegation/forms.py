"""The form by which an approver names a delegate."""

from __future__ import annotations

from django import forms

from tenants.core.forms import DATE_INPUT


class DelegationForm(forms.Form):
    email = forms.EmailField(label="Email address", max_length=254, help_text="Any person with an account.")
    starts_at = forms.DateField(label="First day", widget=DATE_INPUT)
    ends_at = forms.DateField(label="Last day", widget=DATE_INPUT)
