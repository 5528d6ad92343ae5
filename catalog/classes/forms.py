"""Forms of the steps of a class's life cycle in the admin."""

from __future__ import annotations

from django import forms

from catalog.classes import policy as class_policy

DATETIME_INPUT = forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M")


class HoldForm(forms.Form):
    reason = forms.CharField(
        label="Held for",
        max_length=class_policy.HOLD_REASON_MAX,
        help_text="Goes on the sentence “A100 is held since 09:10 for …”; everybody who waits reads it.",
    )
    until = forms.DateTimeField(
        label="Expected to open", required=False, widget=DATETIME_INPUT, help_text="Empty: unknown."
    )


class ReleaseForm(forms.Form):
    """Nothing to fill in."""


class RetireForm(forms.Form):
    successor = forms.CharField(max_length=40, required=False, help_text="Short name of the class that replaces it.")
    message = forms.CharField(max_length=class_policy.MESSAGE_MAX, required=False, help_text="Holders read it.")
    runs_until = forms.DateTimeField(
        label="What runs may go on until",
        required=False,
        widget=DATETIME_INPUT,
        help_text="What still runs then is stopped. Empty: it goes on.",
    )
