"""Forms of administrators: the filter of the list, a new account, its roles, the classes that an approver decides."""

from __future__ import annotations

from typing import Any

from django import forms
from django.conf import settings

from accounts.models import Role
from accounts.people import policy as people_policy
from accounts.rest.strict.forms import StrictForm
from catalog.classes import queries as class_queries
from catalog.models import GpuClass

# The value for every class in the form; no slug contains a star.
EVERY_CLASS = "*"


class PeopleFilterForm(forms.Form):
    """A filter value that cannot be parsed is ignored."""

    q = forms.CharField(required=False, max_length=80)
    role = forms.ChoiceField(required=False, choices=[("", "Any"), *Role.choices])
    state = forms.ChoiceField(required=False, choices=[("", "Any"), ("active", "active"), ("suspended", "suspended")])


class RolesForm(StrictForm):
    roles = forms.MultipleChoiceField(required=False, choices=Role.choices, widget=forms.CheckboxSelectMultiple)


class PersonForm(StrictForm):
    email = forms.EmailField(label="Email address", max_length=people_policy.ADDRESS_MAX)
    name = forms.CharField(max_length=people_policy.NAME_MAX)


class ApproverClassForm(StrictForm):
    gpu_class = forms.ChoiceField(label="Class")

    def __init__(self, *args: Any, given: set[str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # Accounts exist before a cluster does.
        rows = GpuClass.objects.filter(
            cluster__name=settings.CLUSTER_NAME, life_cycle__in=class_queries.OPEN_STATES
        ).order_by("slug")
        open_ones = [(one.slug, one.name) for one in rows if one.slug not in given]
        every = [] if EVERY_CLASS in given else [(EVERY_CLASS, "All current and future classes")]
        self.fields["gpu_class"].choices = [("", "Choose"), *every, *open_ones]  # type: ignore[attr-defined]
