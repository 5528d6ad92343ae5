"""Rules that decide without a person, as rows that staff edit. Part of tenants.models."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

BOUNDS = (
    "growth_percent_max",
    "units_max",
    "days_max",
    "peak_percent_min",
    "mean_percent_min",
    "waited_percent_min",
    "seen_percent_min",
    "activity_percent_min",
)


class Rule(models.Model):
    """A rule that decides without a person while it is on; `name` is one of tenants/requests/rules/policy.py.

    Only the rule "increase" has bounds, and then all of them; policy.py describes each.
    """

    name = models.CharField(max_length=20, unique=True)
    is_on = models.BooleanField(default=True)
    growth_percent_max = models.PositiveIntegerField(null=True, blank=True)
    units_max = models.PositiveIntegerField(null=True, blank=True)
    days_max = models.PositiveIntegerField(null=True, blank=True)
    peak_percent_min = models.PositiveIntegerField(null=True, blank=True)
    mean_percent_min = models.PositiveIntegerField(null=True, blank=True)
    waited_percent_min = models.PositiveIntegerField(null=True, blank=True)
    seen_percent_min = models.PositiveIntegerField(null=True, blank=True)
    activity_percent_min = models.PositiveIntegerField(null=True, blank=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=(~Q(name="increase") & Q(**{f"{bound}__isnull": True for bound in BOUNDS}))
                | Q(name="increase", **{f"{bound}__isnull": False for bound in BOUNDS}),
                name="rule_bounds_of_increase",
            ),
            models.CheckConstraint(
                condition=Q(name__in=["decrease", "starter", "bundle"])
                | Q(
                    growth_percent_max__range=(1, 1000),
                    units_max__range=(1, 100_000),
                    days_max__range=(1, 1096),
                    peak_percent_min__range=(1, 100),
                    mean_percent_min__range=(0, 100),
                    waited_percent_min__range=(0, 100),
                    seen_percent_min__range=(1, 100),
                    activity_percent_min__range=(0, 100),
                ),
                name="rule_bounds_possible",
            ),
        ]

    def __str__(self) -> str:
        return self.name
