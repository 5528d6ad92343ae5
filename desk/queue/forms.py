"""Form with which staff pause scheduling of a class."""

from __future__ import annotations

from django import forms

from catalog.classes import policy as class_policy


class HoldForm(forms.Form):
    reason = forms.CharField(max_length=class_policy.HOLD_REASON_MAX)
    until = forms.DateTimeField(required=False)
