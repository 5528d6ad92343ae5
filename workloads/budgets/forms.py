"""The form for the budget of a team."""

from __future__ import annotations

from django import forms

from workloads.models import TeamBudget


class BudgetForm(forms.Form):
    amount = forms.DecimalField(
        label="Budget a month", required=False, max_digits=14, decimal_places=2, help_text="Empty: no budget."
    )
    at_limit = forms.ChoiceField(label="At 100 %", choices=TeamBudget.AtLimit.choices)
