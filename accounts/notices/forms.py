"""The forms of the page Notices."""

from __future__ import annotations

from typing import Any

from django import forms

from accounts.models import NoticeChannel
from accounts.notices.queries import Preference


class PreferencesForm(forms.Form):
    """One choice for each kind that a person may change."""

    def __init__(self, data: Any, *, preferences: list[Preference]) -> None:
        super().__init__(data, initial={str(one.kind): str(one.channel) for one in preferences})
        for one in preferences:
            if one.may_change:
                self.fields[str(one.kind)] = forms.ChoiceField(
                    label=one.label,
                    choices=NoticeChannel.choices,
                    widget=forms.Select(attrs={"class": "form-select form-select-sm"}),
                )


class ReadForm(forms.Form):
    """The notice to mark as read; none: all of them."""

    notice = forms.IntegerField(required=False, min_value=1)
