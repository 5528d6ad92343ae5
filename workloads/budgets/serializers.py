"""The budget of a team, as REST takes and shows it."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from rest_framework import serializers

from accounts.rest.strict.serializers import StrictSerializer
from accounts.rest.validators import DocumentedChoiceField
from workloads.models import TeamBudget

AT_LIMIT = [str(value) for value in TeamBudget.AtLimit.values]
AT_LIMIT_HELP = "tell: owners are told. confirm: new launches need the confirmation of an owner. stop: nothing starts."


class DecimalText(serializers.DecimalField):
    """A number in JSON is binary in many programs, and would not be what was typed."""

    def to_internal_value(self, data: Any) -> Decimal:
        if not isinstance(data, str):
            self.fail("invalid")
        found: Decimal = super().to_internal_value(data)
        return found


class WantedBudgetSerializer(StrictSerializer):
    amount = DecimalText(max_digits=14, decimal_places=2, help_text="For every calendar month.")
    at_limit = DocumentedChoiceField(choices=AT_LIMIT, help_text=AT_LIMIT_HELP)


class BudgetSerializer(serializers.Serializer[Any]):
    amount = serializers.CharField(allow_null=True, help_text="A decimal number. null: the team has no budget.")
    at_limit = serializers.ChoiceField(choices=AT_LIMIT, allow_null=True, help_text=AT_LIMIT_HELP)
    cost = serializers.CharField(allow_null=True, help_text="Of this month, as measured. null: not measured yet.")
    percent = serializers.IntegerField(allow_null=True, help_text="Of the amount, rounded down.")
    measured_at = serializers.DateTimeField(allow_null=True)
    forecast = serializers.CharField(allow_null=True, help_text="Cost at the end of the month. null: unknown.")
    forecast_basis = serializers.CharField(allow_blank=True, help_text="A sentence.")
    confirmed_at = serializers.DateTimeField(
        allow_null=True, help_text="When an owner confirmed launches beyond the budget in this month."
    )
    confirmed_by = serializers.CharField(allow_blank=True)
    refusal = serializers.CharField(allow_blank=True, help_text="Why nothing starts. Blank: launches are accepted.")


NO_BUDGET = dict.fromkeys(BudgetSerializer().fields) | {"forecast_basis": "", "confirmed_by": "", "refusal": ""}
