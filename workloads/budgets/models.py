"""The budget of a team, as one row that web and the worker write different columns of."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q

from portal.core.errors import constraint_sentence
from tenants.models import Tenant


class TeamBudget(models.Model):
    """`amount`: the cost of units held in a calendar month, every month. Without a row, a team has no budget.

    From `cost` on, the columns are what was measured last, of the month from `month_since` to `month_until`: a launch
    reads them and computes nothing. In a later month they say nothing. Cost only grows within a month, so that an old
    figure is too low, never too high. `told_percent`: the highest threshold that owners were told of in that month.
    `confirmed_at`: when an owner allowed new launches beyond the budget, for the rest of that month.
    """

    class AtLimit(models.TextChoices):
        TELL = "tell", "owners are told, nothing else"
        CONFIRM = "confirm", "new launches need the confirmation of an owner"
        STOP = "stop", "nothing starts"

    tenant = models.OneToOneField(Tenant, on_delete=models.CASCADE, related_name="+")
    amount = models.DecimalField(max_digits=14, decimal_places=2)
    at_limit = models.CharField(max_length=10, choices=AtLimit, default=AtLimit.TELL)
    confirmed_at = models.DateTimeField(null=True, blank=True)
    confirmed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    cost = models.DecimalField(max_digits=16, decimal_places=2, default=0)
    month_since = models.DateTimeField(null=True, blank=True)
    month_until = models.DateTimeField(null=True, blank=True)
    measured_at = models.DateTimeField(null=True, blank=True)
    # Of the days before `measured_at` from which the rest of the month is estimated.
    recent_cost = models.DecimalField(max_digits=16, decimal_places=2, default=0)
    recent_since = models.DateTimeField(null=True, blank=True)
    told_percent = models.PositiveSmallIntegerField(default=0)

    class Meta:
        constraints = [models.CheckConstraint(condition=Q(amount__gt=0), name="budget_amount")]

    def __str__(self) -> str:
        return f"budget of {self.amount} a month"


constraint_sentence("budget_amount", "bad_budget", "Enter a budget of more than 0.", field="amount")
