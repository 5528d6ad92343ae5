"""The form by which staff reduce the quota of a team."""

from __future__ import annotations

from django import forms

from tenants.core.forms import DATE_INPUT, FormWithLines
from tenants.requests import policy as request_policy


class ReclaimForm(FormWithLines):
    """Of one grant."""

    units = forms.IntegerField(label="New total", min_value=0, max_value=request_policy.UNITS_MAX)
    from_date = forms.DateField(label="From", widget=DATE_INPUT)
    justification = forms.CharField(
        label="Justification",
        max_length=request_policy.JUSTIFICATION_MAX,
        widget=forms.Textarea(attrs={"rows": 4}),
        help_text="Shown to the team and to the approver.",
    )
