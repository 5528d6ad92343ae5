"""The forms by which operators write an announcement, and change its end."""

from __future__ import annotations

from typing import Any

from django import forms

from catalog.models import GpuClass
from tenants.models import Announcement, Tenant

_TIME = {"type": "datetime-local"}


class AnnouncementForm(forms.Form):
    title = forms.CharField(label="Title", max_length=100)
    body = forms.CharField(label="Text", max_length=2000, widget=forms.Textarea(attrs={"rows": 4}))
    severity = forms.ChoiceField(label="Severity", choices=Announcement.Severity.choices)
    audience = forms.ChoiceField(label="Audience", choices=Announcement.Audience.choices)
    classes = forms.ModelMultipleChoiceField(
        GpuClass.objects.order_by("slug"), label="Classes", required=False, to_field_name="slug"
    )
    teams = forms.ModelMultipleChoiceField(Tenant.objects.all(), label="Teams", required=False, to_field_name="slug")
    starts = forms.DateTimeField(label="From", widget=forms.DateTimeInput(attrs=_TIME, format="%Y-%m-%dT%H:%M"))
    until = forms.DateTimeField(label="Until", widget=forms.DateTimeInput(attrs=_TIME, format="%Y-%m-%dT%H:%M"))
    wants_acknowledgement = forms.BooleanField(label="Ask for acknowledgement", required=False)

    def values(self) -> dict[str, Any]:
        """As keywords of the action."""
        typed = dict(self.cleaned_data)
        typed["ends"] = typed.pop("until")
        return typed | {name: [one.slug for one in typed[name]] for name in ("classes", "teams")}


class EndForm(forms.Form):
    until = forms.DateTimeField(label="Until", widget=forms.DateTimeInput(attrs=_TIME, format="%Y-%m-%dT%H:%M"))
