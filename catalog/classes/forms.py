"""Forms of the steps of a class's life cycle."""

from __future__ import annotations

from django import forms

from catalog.classes import policy as class_policy

DATETIME_INPUT = forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M")


class HoldForm(forms.Form):
    reason = forms.CharField(
        label="Reason",
        max_length=class_policy.HOLD_REASON_MAX,
        help_text="Shown as “Scheduling of A100 has been paused since 09:10 for …” to all users with queued workloads.",
    )
    until = forms.DateTimeField(
        label="Expected to resume", required=False, widget=DATETIME_INPUT, help_text="Empty: unknown."
    )


class ReleaseForm(forms.Form):
    """No fields."""


class RetireForm(forms.Form):
    successor = forms.CharField(max_length=40, required=False, help_text="Slug of the class that replaces it.")
    message = forms.CharField(
        max_length=class_policy.MESSAGE_MAX, required=False, help_text="Shown to teams with quota."
    )
    runs_until = forms.DateTimeField(
        label="Running workloads may continue until",
        required=False,
        widget=DATETIME_INPUT,
        help_text="Workloads still running then are stopped. Empty: no end.",
    )
