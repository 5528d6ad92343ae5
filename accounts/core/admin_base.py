"""The Django admin of models whose rows only actions write: the form that calls the action, and the admin around it.

class BundleForm(ActionForm):
    class Meta:
        model = Bundle
        fields = ("name", "days")

    def act(self, values: dict[str, Any], *, by: Actor) -> Bundle:
        return bundle_actions.put_bundle(bundle_id=self.instance.pk, by=by, **values)


@admin.register(Bundle)
class BundleAdmin(ActionModelAdmin):
    form = BundleForm
    can_add = can_change = True

    def refusal(self, by: Actor) -> Refusal | None:
        return policy.may_operate(by)
"""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.db.models import Model
from django.http import HttpRequest

from accounts.core.actor import Actor
from accounts.core.request_actor import actor
from portal.core.errors import Refusal
from portal.web.refusals import refusal_in_form


class ActionForm(forms.ModelForm):
    """Calls its action while the form is checked, so that a refusal appears beside the field that it names."""

    request: HttpRequest

    def act(self, values: dict[str, Any], *, by: Actor) -> Model:
        """Calls the action with what was typed and returns the row that it made. Raises Refused."""
        raise NotImplementedError

    def clean(self) -> dict[str, Any]:
        values: dict[str, Any] = super().clean() or {}
        if not self.errors:
            with refusal_in_form(self):
                self.instance = self.act(values, by=actor(self.request))
        return values

    def _post_clean(self) -> None:
        """Does nothing to the instance: the action has already written the row."""


class ActionModelAdmin(admin.ModelAdmin):
    """Saves nothing itself: `form` is an ActionForm. `refusal` says who may see the model, and `can_add`, `can_change`
    and `can_delete` what they may do. A subclass that deletes calls an action in `delete_model`.
    """

    can_add = False
    can_change = False
    can_delete = False

    def refusal(self, by: Actor) -> Refusal | None:
        """Why this actor may not see the model here, by the app's policy."""
        raise NotImplementedError

    def has_module_permission(self, request: HttpRequest) -> bool:
        return request.user.is_authenticated and self.refusal(actor(request)) is None

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.has_module_permission(request)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return self.can_add and self.has_module_permission(request)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.can_change and self.has_module_permission(request)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.can_delete and self.has_module_permission(request)

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        form = super().get_form(request, obj, change=change, **kwargs)
        return type(self.form.__name__, (form,), {"request": request})

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Done by the action."""

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        raise NotImplementedError

    def log_addition(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        """Events are the record."""

    def log_change(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        """Events are the record."""

    def log_deletions(self, request: HttpRequest, queryset: Any) -> Any:
        """Events are the record."""
