"""Form fields and attributes that several forms of this app share."""

from __future__ import annotations

from django import forms

# For names and addresses: no autocompletion and no spelling correction.
VERBATIM_INPUT = {"autocomplete": "off", "spellcheck": "false", "autocapitalize": "none"}


class AnyChoice(forms.ChoiceField):
    """Takes any text: the action knows what is possible, and reading all choices only to find one costs time."""

    def valid_value(self, value: object) -> bool:
        return True


class AnyChoices(forms.MultipleChoiceField):
    """The same for several."""

    def valid_value(self, value: object) -> bool:
        return True
