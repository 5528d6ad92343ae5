"""Requests for a team, and the quota bundles for new teams. Part of tenants.models."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from accounts.core.actor import Actor
from catalog.models import GpuClass
from portal.core.errors import constraint_sentence
from tenants.approvers.delegation.models import delegation_filters


class Bundle(models.Model):
    """The initial quota of a kind of new team: units of classes for a number of days. Rows that staff edit."""

    name = models.CharField(max_length=60, unique=True)
    summary = models.CharField(max_length=200, blank=True, default="")
    days = models.PositiveIntegerField(default=90)
    position = models.PositiveIntegerField(default=100)
    is_open = models.BooleanField(default=True, help_text="Can be selected for new teams")

    class Meta:
        ordering = ["position", "name"]
        constraints = [models.CheckConstraint(condition=Q(days__gte=1, days__lte=1096), name="bundle_days")]

    def __str__(self) -> str:
        return self.name


constraint_sentence("tenants_bundle_name_key", "name_taken", "A bundle with this name already exists.", field="name")
constraint_sentence("bundle_days", "bad_period", "Enter 1 to 1,096 days (three years).", field="days")


class BundleLine(models.Model):
    bundle = models.ForeignKey(Bundle, on_delete=models.CASCADE, related_name="lines", db_index=False)
    gpu_class = models.ForeignKey(GpuClass, on_delete=models.PROTECT, related_name="+")
    units = models.PositiveIntegerField()

    class Meta:
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint("bundle", "gpu_class", name="bundle_line_once"),
            models.CheckConstraint(condition=Q(units__gte=1), name="bundle_line_units"),
        ]

    def __str__(self) -> str:
        return f"{self.units} {self.gpu_class_id} in {self.bundle_id}"


constraint_sentence("bundle_line_once", "bad_lines", "A bundle can have only one line per class.", field="gpu_class")
constraint_sentence("bundle_line_units", "bad_units", "Enter at least 1 unit per line.", field="units")


class TeamRequestQuerySet(models.QuerySet["TeamRequest"]):
    def visible_to(self, actor: Actor) -> TeamRequestQuerySet:
        if actor.user is None or actor.sees_all:
            return self
        if actor.confined_to:
            return self.none()
        is_deputy, of_class = delegation_filters(actor.user)
        return self.filter(
            Q(user=actor.user) | (is_deputy & Q(bundle__in=BundleLine.objects.filter(of_class).values("bundle")))
        )


class TeamRequest(models.Model):
    """A person requests a team with a bundle; approvers decide. `tenant`: the team that was created from it."""

    class State(models.TextChoices):
        PENDING = "pending", "pending"
        APPROVED = "approved", "approved"
        DENIED = "denied", "denied"
        WITHDRAWN = "withdrawn", "withdrawn"

    TRANSITIONS = {State.PENDING: {State.APPROVED, State.DENIED, State.WITHDRAWN}}

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    name = models.CharField(max_length=80)
    slug = models.SlugField(max_length=40, db_index=False)
    purpose = models.CharField(max_length=300)
    bundle = models.ForeignKey(Bundle, on_delete=models.PROTECT, related_name="+")
    asked_at = models.DateTimeField(db_default=Now(), editable=False)
    state = models.CharField(max_length=10, choices=State, default=State.PENDING)
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    decided_at = models.DateTimeField(null=True, blank=True)
    reason = models.CharField(max_length=500, blank=True, default="")
    tenant = models.ForeignKey("tenants.Tenant", on_delete=models.PROTECT, null=True, blank=True, related_name="+")

    objects = TeamRequestQuerySet.as_manager()

    class Meta:
        ordering = ["-id"]
        verbose_name = "request for a team"
        constraints = [
            models.UniqueConstraint("user", condition=Q(state="pending"), name="one_pending_team_request"),
            models.CheckConstraint(
                condition=Q(state="approved", tenant__isnull=False) | (~Q(state="approved") & Q(tenant=None)),
                name="team_request_founded",
            ),
        ]

    def __str__(self) -> str:
        return self.name


constraint_sentence(
    "one_pending_team_request",
    "already_asked",
    "You already have a pending request for a team. Withdraw it, or wait for the decision.",
)
