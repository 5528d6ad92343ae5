"""The Django admin of rules, which calls the verb. Part of tenants.admin."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.http import HttpRequest

from accounts.core.request_actor import actor
from portal.web.refusals import refusal_in_form
from tenants.core import policy
from tenants.models import Rule
from tenants.requests.rules import actions as rule_actions
from tenants.requests.rules.models import BOUNDS
from tenants.requests.rules.policy import BOUND_RANGES, INCREASE, IncreaseBounds, bounds_refusals

BOUND_HELP_TEXTS = {
    "growth_percent_max": "The new total is at most so many percent more than the running one (one unit at the least).",
    "units_max": "The new total is at most so many units.",
    "days_max": "It is asked for at most so many days.",
    "peak_percent_min": "At the peak of the last 30 days so many percent of what the team holds were in use.",
    "mean_percent_min": "In their mean, so many percent.",
    "waited_percent_min": "So many percent of the team's runs waited over a minute; 0 asks for none.",
    "seen_percent_min": "So many percent of the 30 days were looked at; what nobody saw justifies nothing.",
}


class RuleForm(forms.ModelForm):
    """Runs the verb while the form is checked, so that a refusal stands in it, one sentence a field."""

    class Meta:
        model = Rule
        fields = ("is_on", *BOUNDS)
        help_texts = BOUND_HELP_TEXTS

    request: HttpRequest

    def clean(self) -> dict[str, Any]:
        values: dict[str, Any] = super().clean() or {}
        if self.errors:
            return values
        typed = {name: values.get(name) for name in BOUND_RANGES} if self.instance.name == INCREASE else None
        refused = bounds_refusals(typed) if typed is not None else {}
        for field, refusal in refused.items():
            self.add_error(field, refusal.message)
        if not refused:
            bounds = IncreaseBounds(**typed) if typed is not None else None  # type: ignore[arg-type]
            with refusal_in_form(self):
                by = actor(self.request)
                self.instance = rule_actions.change_rule(
                    self.instance.name, is_on=values["is_on"], bounds=bounds, by=by
                )
        return values

    def _post_clean(self) -> None:
        """The row is what the verb made of it."""


@admin.register(Rule)
class RuleAdmin(admin.ModelAdmin):
    """Which rules there are is said by the code; staff turn them on and off, and say how far "increase" goes."""

    form = RuleForm
    list_display = ("name", "is_on")
    readonly_fields = ("name",)

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        has_bounds = obj is not None and obj.name == INCREASE
        return ("name", "is_on", *(BOUNDS if has_bounds else ()))

    def has_module_permission(self, request: HttpRequest) -> bool:
        return request.user.is_authenticated and policy.may_operate(actor(request)) is None

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.has_module_permission(request)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.has_module_permission(request)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        form = super().get_form(request, obj, change=change, **kwargs)
        return type("RuleForm", (form,), {"request": request})

    def save_model(self, request: HttpRequest, obj: Rule, form: Any, change: bool) -> None:
        """Done by the verb."""

    def log_change(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        """Events are the record."""
