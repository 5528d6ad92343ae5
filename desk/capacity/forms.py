"""What staff type to publish a banner."""

from __future__ import annotations

from django import forms


class BannerForm(forms.Form):
    # Its length is the verb's to judge.
    text = forms.CharField()
    until = forms.DateTimeField(required=False)
