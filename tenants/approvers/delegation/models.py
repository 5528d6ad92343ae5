"""A delegate (Deputy) decides for an approver within a period. Part of tenants.models."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib.postgres.constraints import ExclusionConstraint
from django.contrib.postgres.fields import DateTimeRangeField, RangeOperators
from django.db import models
from django.db.models import Exists, F, Q
from django.db.models.functions import Now

from accounts.core.actor import Actor
from accounts.models import Role
from portal.core.errors import constraint_sentence


class DeputyQuerySet(models.QuerySet["Deputy"]):
    def visible_to(self, actor: Actor) -> DeputyQuerySet:
        """Visible to the approver, the delegate and staff."""
        if actor.user is None or actor.sees_all:
            return self
        if actor.confined_to:
            return self.none()
        return self.filter(Q(approver=actor.user) | Q(deputy=actor.user))

    def in_force(self) -> DeputyQuerySet:
        """In force now, by the database's clock. Void if the approver lost the role or either account is suspended."""
        return self.filter(
            period__contains=Now(),
            ended_at=None,
            approver__is_active=True,
            approver__roles__contains=[Role.APPROVER],
            deputy__is_active=True,
        )


def delegation_filters(user: Any) -> tuple[Q, Q]:
    """Returns two filters: whether the person is a delegate now; and, for rows with a `gpu_class`, those of the classes
    that the delegate decides. No query.

    PostgreSQL evaluates the first once per query, so the second costs nothing for users who are no delegates.
    """
    lent = Deputy.objects.in_force().filter(deputy=user, approver__approver_for__isnull=False)
    all_classes = Deputy.objects.in_force().filter(
        deputy=user, approver__approver_for__isnull=False, approver__approver_for__gpu_class=None
    )
    of_class = Q(gpu_class__in=lent.values("approver__approver_for__gpu_class")) | Q(Exists(all_classes))
    return Q(Exists(lent)), of_class


class Deputy(models.Model):
    """Within `period` the delegate decides what the approver may decide at that moment, unless it was ended earlier."""

    approver = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    deputy = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    period = DateTimeRangeField()
    named_at = models.DateTimeField(db_default=Now(), editable=False)
    ended_at = models.DateTimeField(null=True, blank=True)

    objects = DeputyQuerySet.as_manager()

    class Meta:
        verbose_name = "delegate"
        ordering = ["id"]
        constraints = [
            models.CheckConstraint(condition=~Q(approver=F("deputy")), name="deputy_is_somebody_else"),
            models.CheckConstraint(
                condition=Q(period__isempty=False, period__startswith__isnull=False, period__endswith__isnull=False),
                name="deputy_period_bounded",
            ),
            ExclusionConstraint(
                name="one_deputy_at_a_time",
                expressions=[("approver", RangeOperators.EQUAL), ("period", RangeOperators.OVERLAPS)],
                condition=Q(ended_at=None),
            ),
        ]

    def __str__(self) -> str:
        return f"delegate {self.deputy.name} for {self.approver.name}"


constraint_sentence(
    "one_deputy_at_a_time",
    "has_delegate",
    "You already have a delegate in this period. End that delegation first, or choose other dates.",
    field="starts_at",
)
