"""Form with which staff publish a banner."""

from __future__ import annotations

from django import forms


class BannerForm(forms.Form):
    # The action checks the length.
    text = forms.CharField()
    until = forms.DateTimeField(required=False)
