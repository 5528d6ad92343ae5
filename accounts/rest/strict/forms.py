"""A form of a page that refuses unknown fields."""

from __future__ import annotations

from typing import Any

from django import forms

from accounts.rest.strict.unknown_fields import NAME_LIMIT, first_unknown_field
from portal.core import validation_messages


class StrictForm(forms.Form):
    """Base of forms that refuse unknown fields. `sent_along`: names that the page sends in addition to the fields."""

    sent_along: frozenset[str] = frozenset({"csrfmiddlewaretoken"})

    def clean(self) -> dict[str, Any] | None:
        name = first_unknown_field(set(self.data) - self.sent_along, list(self.fields))
        if name is not None:
            told = validation_messages.validation_message(
                name[:NAME_LIMIT], validation_messages.UNKNOWN, f"Known fields: {', '.join(self.fields)}."
            )
            raise forms.ValidationError(told, code=validation_messages.UNKNOWN)
        return super().clean()
