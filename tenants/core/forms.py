"""Shared form fields: dates of whole days, and forms for rows that have their own errors."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, time
from typing import Any

from django import forms
from django.utils import timezone

# Browsers accept and submit ISO dates only, whatever the language.
DATE_INPUT = forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d")


def start_of_day(day: date) -> datetime:
    return timezone.make_aware(datetime.combine(day, time.min))


def end_of_day(day: date) -> datetime:
    """Returns the last instant of the day that the user entered as the last one. The next day's grant follows without a
    gap; in a gap, other teams would take the units.
    """
    return timezone.make_aware(datetime.combine(day, time.max))


class FormWithLines(forms.Form):
    """A form for rows that have their own errors: a refusal of `lines[1].units` belongs to the second row."""

    LINE_FIELDS = ("gpu_class", "units", "kind", "starts_at", "ends_at", "grace_hours", "reason")

    def name_lines(self, keys: Sequence[Any]) -> None:
        """`keys`: identifies the lines, in the order in which the action receives them."""
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
