"""An announcement of the operators, and who acknowledged it. Part of tenants.models."""

from __future__ import annotations

from django.conf import settings
from django.contrib.postgres.fields import DateTimeRangeField
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from catalog.models import GpuClass


class AnnouncementQuerySet(models.QuerySet["Announcement"]):
    def in_force(self) -> AnnouncementQuerySet:
        """Now, by the database's clock."""
        return self.filter(withdrawn_at=None, period__contains=Now())

    def not_over(self) -> AnnouncementQuerySet:
        """In force, or to come."""
        return self.filter(withdrawn_at=None, period__endswith__gt=Now())

    def over(self) -> AnnouncementQuerySet:
        return self.exclude(withdrawn_at=None, period__endswith__gt=Now())


class Announcement(models.Model):
    """Its text never changes. Shown within `period`, unless it was withdrawn."""

    class Severity(models.TextChoices):
        INFORMATION = "information", "information"
        WARNING = "warning", "warning"
        OUTAGE = "outage", "outage"

    class Audience(models.TextChoices):
        EVERYBODY = "everybody", "everybody"
        CLASSES = "classes", "users of classes"
        TEAMS = "teams", "teams"

    title = models.CharField(max_length=100)
    body = models.TextField(max_length=2000)
    severity = models.CharField(max_length=11, choices=Severity, default=Severity.INFORMATION)
    audience = models.CharField(max_length=9, choices=Audience)
    classes = models.ManyToManyField(GpuClass, related_name="+")
    teams = models.ManyToManyField("tenants.Tenant", related_name="+")
    period = DateTimeRangeField()
    wants_acknowledgement = models.BooleanField(default=False)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    withdrawn_at = models.DateTimeField(null=True, blank=True)

    objects = AnnouncementQuerySet.as_manager()

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.CheckConstraint(
                condition=Q(period__isempty=False, period__startswith__isnull=False, period__endswith__isnull=False),
                name="announcement_period_bounded",
            )
        ]

    def __str__(self) -> str:
        return f"announcement #{self.pk}"


class Acknowledgement(models.Model):
    announcement = models.ForeignKey(
        Announcement, on_delete=models.CASCADE, related_name="acknowledgements", db_index=False
    )
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        constraints = [models.UniqueConstraint("announcement", "user", name="acknowledged_once")]

    def __str__(self) -> str:
        return f"acknowledgement of {self.user_id}"
