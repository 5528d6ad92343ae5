"""Form fields and attributes that several forms of this app share."""

from __future__ import annotations

from django import forms

# For names and addresses: no autocompletion and no spelling correction.
VERBATIM_INPUT = {"autocomplete": "off", "spellcheck": "false", "autocapitalize": "none"}


class AnyChoice(forms.ChoiceField):
    """Accepts any text: the action checks the value, and reading all choices only to find one would cost time."""

    def valid_value(self, value: object) -> bool:
        return True


class AnyChoices(forms.MultipleChoiceField):
    """As AnyChoice, for several values."""

    def valid_value(self, value: object) -> bool:
        return True
