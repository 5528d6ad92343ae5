"""The demand for which a MIG layout is planned; a measurement of the interconnect."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django import forms

from catalog.interconnect.actions import OUTPUT_MAX
from desk.nodes.mig_plan import MIXED, SINGLE, ProfileDemand

# More than any queue has: the page opens with what is queued.
DEMAND_LIMIT = 100_000


class MeasurementForm(forms.Form):
    output = forms.CharField(max_length=OUTPUT_MAX, strip=False, label="Output", widget=forms.Textarea)
    measured_on = forms.DateField(required=False, label="Measured on", widget=forms.DateInput(attrs={"type": "date"}))


class WithdrawalForm(forms.Form):
    because = forms.CharField(required=False, label="Reason")


class MigDemandForm(forms.Form):
    """A number of instances for each profile, with the profile as the name of the field."""

    strategy = forms.ChoiceField(
        choices=[(MIXED, "mixed: several profiles"), (SINGLE, "single: the same profile on all GPUs")],
        label="MIG strategy",
    )

    def __init__(self, *args: Any, lines: Sequence[ProfileDemand], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.lines = lines
        for line in lines:
            self.fields[line.profile] = forms.IntegerField(
                min_value=0,
                max_value=DEMAND_LIMIT,
                label=line.profile,
                error_messages={
                    "invalid": f"{line.profile}: enter a whole number from 0 to {DEMAND_LIMIT}.",
                    "required": f"{line.profile}: enter a whole number from 0 to {DEMAND_LIMIT}.",
                    "min_value": f"{line.profile}: enter 0 or more.",
                    "max_value": f"{line.profile}: enter {DEMAND_LIMIT} or less.",
                },
            )

    def demand(self) -> dict[str, int]:
        return {line.profile: self.cleaned_data[line.profile] for line in self.lines}
