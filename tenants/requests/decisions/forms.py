"""The form of an approver's answer to the lines of a request."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from django import forms

from tenants.core import policy as core_policy
from tenants.core.forms import FormWithLines
from tenants.requests import policy as request_policy
from tenants.requests.queries import LineRow


class DecisionForm(FormWithLines):
    """One answer for all pending lines of a request, with units and dates of each."""

    decision = forms.ChoiceField(choices=[("approve", "approve"), ("deny", "deny")])
    reason = forms.CharField(required=False, max_length=core_policy.REASON_MAX)
    over_promise = forms.BooleanField(required=False)

    def __init__(self, *args: Any, lines: Collection[LineRow], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for line in lines:
            units = forms.IntegerField(label="Units", min_value=0, max_value=request_policy.UNITS_MAX)
            self.fields[f"units-{line.pk}"] = units
            self.fields[f"from-{line.pk}"] = forms.DateField(label="From")
            self.fields[f"until-{line.pk}"] = forms.DateField(label="To")
            self.fields[f"grace-{line.pk}"] = forms.IntegerField(label="Grace", required=False)
        self.name_lines([line.pk for line in lines])

    def line_errors(self) -> dict[Any, str]:
        """Includes values that could not be parsed: "To: Enter a valid date."."""
        found = super().line_errors()
        for pk in self.line_keys:
            boxes = [self[f"{name}-{pk}"] for name in ("units", "from", "until", "grace")]
            told = [f"{box.label}: {text}" for box in boxes for text in box.errors]
            if told:
                found[pk] = " ".join([*told, *([found[pk]] if pk in found else [])])
        return found
