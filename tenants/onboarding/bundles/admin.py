"""The Django admin of bundles, which calls the verb. Part of tenants.admin."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.core.exceptions import ValidationError
from django.http import HttpRequest

from accounts.core.request_actor import actor
from portal.web.refusals import refusal_in_form
from tenants.core import policy
from tenants.models import Bundle
from tenants.onboarding.bundles import actions as bundle_actions


class BundleForm(forms.ModelForm):
    """Runs the verb while the form is checked, so that a refusal stands in it. A line of text is a line of it."""

    lines = forms.CharField(
        widget=forms.Textarea(attrs={"rows": 6, "cols": 60}),
        help_text="One line a class, as in the catalog's addresses: a100-sxm4-80gb = 2",
    )

    class Meta:
        model = Bundle
        fields = ("name", "summary", "days", "position", "is_open")

    request: HttpRequest

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
                raise ValidationError(f"'{text.strip()[:60]}' is no line: write the class, an equals sign, the units.")
            found.append((slug, int(units)))
        return found

    def clean(self) -> dict[str, Any]:
        values: dict[str, Any] = super().clean() or {}
        if not self.errors:
            with refusal_in_form(self):
                self.instance = bundle_actions.put_bundle(bundle_id=self.instance.pk, by=actor(self.request), **values)
        return values

    def _post_clean(self) -> None:
        """The row is what the verb made of it."""


@admin.register(Bundle)
class BundleAdmin(admin.ModelAdmin):
    form = BundleForm
    list_display = ("name", "summary", "days", "position", "is_open")
    list_filter = ("is_open",)

    def has_module_permission(self, request: HttpRequest) -> bool:
        return self._may_operate(request)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self._may_operate(request)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return self._may_operate(request)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self._may_operate(request)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Requests name it: one that is not open is not offered."""
        return False

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        form = super().get_form(request, obj, change=change, **kwargs)
        return type("BundleForm", (form,), {"request": request})

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Done by the verb."""

    def log_addition(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        """Events are the record."""

    def log_change(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        """Events are the record."""

    def _may_operate(self, request: HttpRequest) -> bool:
        return request.user.is_authenticated and policy.may_operate(actor(request)) is None
