"""The forms to request a team and to decide such a request. The actions check what is allowed."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from django import forms

from tenants.core import policy
from tenants.core.forms import FormWithLines
from tenants.onboarding.bundles.queries import BundleRow
from tenants.onboarding.bundles.shown import bundle_contents
from tenants.onboarding.team_requests import policy as team_request_policy
from tenants.requests import policy as request_policy


class TeamForm(forms.Form):
    name = forms.CharField(label="Name", max_length=team_request_policy.NAME_MAX)
    slug = forms.CharField(
        label="Short name",
        required=False,
        max_length=40,
        help_text="Used in URLs and as namespace. Derived from the name if empty.",
    )
    purpose = forms.CharField(
        label="Purpose",
        max_length=team_request_policy.PURPOSE_MAX,
        widget=forms.Textarea(attrs={"rows": 2}),
        help_text="Approvers base their decision on this.",
    )
    bundle = forms.ChoiceField(label="Initial quota", widget=forms.RadioSelect)

    def __init__(self, *args: Any, bundles: Collection[BundleRow], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field = self.fields["bundle"]
        assert isinstance(field, forms.ChoiceField)
        field.choices = [(one.name, f"{one.name}: {bundle_contents(one)}. {one.summary}".strip()) for one in bundles]


class TeamDecisionForm(FormWithLines):
    """One decision, with the units of each line of the bundle if they are granted with it."""

    decision = forms.ChoiceField(choices=[("approve", "approve"), ("deny", "deny")])
    slug = forms.CharField(label="Short name", max_length=40, required=False)
    reason = forms.CharField(required=False, max_length=policy.REASON_MAX)
    over_promise = forms.BooleanField(required=False)

    def __init__(self, *args: Any, bundle: BundleRow, by_rule: bool = True, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        lines = bundle.lines if by_rule else ()
        for line in lines:
            self.fields[f"units-{line.slug}"] = forms.IntegerField(
                label="Units", min_value=0, max_value=request_policy.UNITS_MAX
            )
        self.name_lines([line.slug for line in lines])

    def line_errors(self) -> dict[Any, str]:
        found = super().line_errors()
        for slug in self.line_keys:
            told = [str(text) for text in self[f"units-{slug}"].errors]
            if told:
                found[slug] = " ".join([*told, *([found[slug]] if slug in found else [])])
        return found

    def units(self) -> dict[str, int]:
        return {slug: self.cleaned_data[f"units-{slug}"] for slug in self.line_keys}
