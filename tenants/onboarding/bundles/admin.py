"""The Django admin of bundles, which calls the action. Part of tenants.admin."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.core.exceptions import ValidationError

from accounts.core.actor import Actor
from accounts.core.admin_base import ActionForm, ActionModelAdmin
from portal.core.errors import Refusal
from tenants.core import policy
from tenants.models import Bundle
from tenants.onboarding.bundles import actions as bundle_actions


class BundleForm(ActionForm):
    """Each line of the text is a line of the bundle."""

    lines = forms.CharField(
        widget=forms.Textarea(attrs={"rows": 6, "cols": 60}),
        help_text="One line per class, with the slug from the catalog: a100-sxm4-80gb = 2",
    )

    class Meta:
        model = Bundle
        fields = ("name", "summary", "days", "position", "is_open")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.instance.pk:
            rows = self.instance.lines.select_related("gpu_class")
            self.initial["lines"] = "\n".join(f"{row.gpu_class.slug} = {row.units}" for row in rows)

    def clean_lines(self) -> list[tuple[str, int]]:
        found = []
        for text in self.cleaned_data["lines"].splitlines():
            if not text.strip():
                continue
            slug, equals, units = (part.strip() for part in text.partition("="))
            if not (equals and units.isascii() and units.isdigit() and len(units) <= 6):
                raise ValidationError(f"'{text.strip()[:60]}' is not valid. Enter lines such as: a100-sxm4-80gb = 2")
            found.append((slug, int(units)))
        return found

    def act(self, values: dict[str, Any], *, by: Actor) -> Bundle:
        return bundle_actions.put_bundle(bundle_id=self.instance.pk, by=by, **values)


@admin.register(Bundle)
class BundleAdmin(ActionModelAdmin):
    """Bundles are never deleted, since requests refer to them: a bundle that is not open is not offered."""

    form = BundleForm
    can_add = True
    can_change = True
    list_display = ("name", "summary", "days", "position", "is_open")
    list_filter = ("is_open",)

    def refusal(self, by: Actor) -> Refusal | None:
        return policy.may_operate(by)
