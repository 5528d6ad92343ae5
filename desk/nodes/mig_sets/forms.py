"""Which nodes of a set are planned, and for what."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django import forms

from desk.nodes.forms import DEMAND_LIMIT
from desk.nodes.mig_sets.shown import label_of
from desk.nodes.mig_sets.types import ProfileLine


class WantedForm(forms.Form):
    """A number of instances for each profile, with the profile as the name of the field."""

    ignores_grants = forms.BooleanField(
        label="Disregard grants",
        required=False,
        help_text="Plans only for what is wanted, and says which grants could not be used.",
    )

    def __init__(self, *args: Any, lines: Sequence[ProfileLine], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.lines = lines
        for line in lines:
            number = f"{label_of(line.profile)}: enter a whole number from 0 to {DEMAND_LIMIT}."
            self.fields[line.profile] = forms.IntegerField(
                min_value=0,
                max_value=DEMAND_LIMIT,
                label=label_of(line.profile),
                error_messages=dict.fromkeys(("invalid", "required", "min_value", "max_value"), number),
            )

    def wanted(self) -> dict[str, int]:
        return {line.profile: self.cleaned_data[line.profile] for line in self.lines}
