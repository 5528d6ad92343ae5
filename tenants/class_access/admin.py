"""The Django admin of access to classes: through the verbs, as every other door."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.http import HttpRequest

from accounts.core.request_actor import actor
from portal.web.refusals import refusal_in_form
from tenants.class_access import actions as class_access_actions
from tenants.core import policy as core_policy
from tenants.models import ClassAccess


class AccessForm(forms.ModelForm):
    """Runs the action while the form is checked, so that a refusal stands in it."""

    class Meta:
        model = ClassAccess
        fields = ("gpu_class", "tenant")

    request: HttpRequest

    def clean(self) -> dict[str, Any]:
        values: dict[str, Any] = super().clean() or {}
        if not self.errors:
            with refusal_in_form(self):
                by, tenant = actor(self.request), values["tenant"]
                self.instance = class_access_actions.allow_team(values["gpu_class"].pk, tenant=tenant.slug, by=by)
        return values

    def _post_clean(self) -> None:
        """The row is what the action made of it."""


@admin.register(ClassAccess)
class AccessAdmin(admin.ModelAdmin):
    form = AccessForm
    list_display = ("gpu_class", "tenant")
    list_filter = ("gpu_class",)
    list_select_related = ("gpu_class", "tenant")

    def has_module_permission(self, request: HttpRequest) -> bool:
        return self._may_operate(request)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self._may_operate(request)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return self._may_operate(request)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self._may_operate(request)

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        form = super().get_form(request, obj, change=change, **kwargs)
        return type("AccessForm", (form,), {"request": request})

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        """Nothing in bulk: each access ends with an Event of its own."""
        return {}

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Done by the action."""

    def delete_model(self, request: HttpRequest, obj: ClassAccess) -> None:
        class_access_actions.disallow_team(obj.gpu_class_id, tenant=obj.tenant.slug, by=actor(request))

    def log_addition(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        """Events are the record."""

    def log_deletions(self, request: HttpRequest, queryset: Any) -> Any:
        """Events are the record."""

    def _may_operate(self, request: HttpRequest) -> bool:
        return request.user.is_authenticated and core_policy.may_operate(actor(request)) is None
