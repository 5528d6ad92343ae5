"""The form by which operators propose the adoption of a namespace."""

from __future__ import annotations

from typing import Any

from django import forms


class AdoptionForm(forms.Form):
    namespace = forms.CharField(label="Namespace", max_length=63, help_text="It exists in the cluster.")
    slug = forms.CharField(
        label="Short name of the team", max_length=40, help_text="The value of the namespace's label."
    )
    name = forms.CharField(label="Name of the team", max_length=80)
    owner = forms.EmailField(
        label="Owner", help_text="The address of an account. Owners of the team accept the adoption."
    )
    purpose = forms.CharField(label="Purpose", max_length=300, required=False)

    def values(self) -> dict[str, Any]:
        """As keywords of the action."""
        return dict(self.cleaned_data)
