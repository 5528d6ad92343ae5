"""Form fields that several rooms use: dates of whole days, and forms beside rows that have errors of their own."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, time
from typing import Any

from django import forms
from django.utils import timezone

# Browsers take and show ISO dates only, whatever the language.
DATE_INPUT = forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d")


def start_of_day(day: date) -> datetime:
    return timezone.make_aware(datetime.combine(day, time.min))


def end_of_day(day: date) -> datetime:
    """The last instant of the day that a person named as the last one; the next day's grant follows without a gap, in
    which the neighbours would take its units away.
    """
    return timezone.make_aware(datetime.combine(day, time.max))


class FormWithLines(forms.Form):
    """A form beside rows that have errors of their own: a refusal of `lines[1].units` belongs to the second row."""

    LINE_FIELDS = ("gpu_class", "units", "kind", "starts_at", "ends_at", "grace_hours", "reason")

    def name_lines(self, keys: Sequence[Any]) -> None:
        """`keys`: what identifies the lines, in the order in which the action gets them."""
        self.line_keys = tuple(keys)
        for index in range(len(keys)):
            for name in self.LINE_FIELDS:
                self.fields[f"lines[{index}].{name}"] = forms.Field(required=False, widget=forms.HiddenInput)

    def line_errors(self) -> dict[Any, str]:
        found = {}
        for index, key in enumerate(getattr(self, "line_keys", ())):
            told = [text for name in self.LINE_FIELDS for text in self.errors.get(f"lines[{index}].{name}", [])]
            if told:
                found[key] = " ".join(str(text) for text in told)
        return found
