"""The Django admin of rules, which calls the action. Part of tenants.admin."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from accounts.core.actor import Actor
from accounts.core.admin_base import ActionForm, ActionModelAdmin
from portal.core.errors import Refusal
from tenants.core import policy
from tenants.models import Rule
from tenants.requests.rules import actions as rule_actions
from tenants.requests.rules.models import BOUNDS
from tenants.requests.rules.policy import BOUND_RANGES, INCREASE, IncreaseBounds, bounds_refusals

BOUND_HELP_TEXTS = {
    "growth_percent_max": "Maximum increase over the current total, in percent (at least one unit).",
    "units_max": "Maximum new total, in units.",
    "days_max": "Maximum period of the request, in days.",
    "peak_percent_min": "Minimum peak usage in the last 30 days, in percent of the quota.",
    "mean_percent_min": "Minimum average usage in the last 30 days, in percent of the quota.",
    "waited_percent_min": "Minimum share of the team's runs that waited over a minute, in percent; 0 for no minimum.",
    "seen_percent_min": "Minimum share of the last 30 days with measured usage, in percent.",
    "activity_percent_min": "Minimum mean activity of the GPUs that the team held in the last 30 days, in percent, of "
    "which as large a share was measured; 0 for no minimum. Shared GPUs are not measured by team.",
}


class RuleForm(ActionForm):
    """Each invalid bound is reported beside its own field."""

    class Meta:
        model = Rule
        fields = ("is_on", *BOUNDS)
        help_texts = BOUND_HELP_TEXTS

    def clean(self) -> dict[str, Any]:
        if not self.errors and self.instance.name == INCREASE:
            for field, refusal in bounds_refusals(self._bounds(self.cleaned_data)).items():
                self.add_error(field, refusal.message)
        return super().clean()

    def act(self, values: dict[str, Any], *, by: Actor) -> Rule:
        bounds = IncreaseBounds(**self._bounds(values)) if self.instance.name == INCREASE else None
        return rule_actions.change_rule(self.instance.name, is_on=values["is_on"], bounds=bounds, by=by)

    def _bounds(self, values: dict[str, Any]) -> dict[str, Any]:
        return {name: values.get(name) for name in BOUND_RANGES}


@admin.register(Rule)
class RuleAdmin(ActionModelAdmin):
    """The code defines which rules exist; staff turn them on and off, and set the bounds of "increase"."""

    form = RuleForm
    can_change = True
    list_display = ("name", "is_on")
    readonly_fields = ("name",)

    def refusal(self, by: Actor) -> Refusal | None:
        return policy.may_operate(by)

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        has_bounds = obj is not None and obj.name == INCREASE
        return ("name", "is_on", *(BOUNDS if has_bounds else ()))
