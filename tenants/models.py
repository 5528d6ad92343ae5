"""Which team may have how much. Decisions change by compare-and-set; Namespace and Plan are reconciled (Due)."""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings
from django.contrib.postgres.constraints import ExclusionConstraint
from django.contrib.postgres.fields import DateTimeRangeField, RangeOperators
from django.db import models
from django.db.models import Q
from django.db.models.functions import Lower, Now, Upper

from accounts.core.actor import Actor
from catalog.models import GpuClass
from cluster.models import Cluster
from portal.core.due import Due
from portal.core.errors import constraint_sentence

# Models that are defined in their own modules, imported here for Django and other importers.
from tenants.announcements.models import Acknowledgement as Acknowledgement
from tenants.announcements.models import Announcement as Announcement
from tenants.approvers.delegation.models import Deputy as Deputy
from tenants.approvers.delegation.models import delegation_filters
from tenants.class_access.image_prefixes.models import ImagePrefix as ImagePrefix
from tenants.members.models import Invitation as Invitation
from tenants.members.models import JoinRequest as JoinRequest
from tenants.members.models import Membership as Membership
from tenants.members.models import in_teams_of
from tenants.onboarding.models import Bundle as Bundle
from tenants.onboarding.models import BundleLine as BundleLine
from tenants.onboarding.models import TeamRequest as TeamRequest
from tenants.requests.rules.models import Rule as Rule

GRACE = timedelta(hours=24)
GRACE_MAX = timedelta(days=14)


class TenantQuerySet(models.QuerySet["Tenant"]):
    def visible_to(self, actor: Actor) -> TenantQuerySet:
        """Returns teams whose existence this actor may know: its own, or all for staff."""
        if actor.user is None or actor.sees_all:
            return self
        return self.filter(in_teams_of(actor))


class Tenant(models.Model):
    slug = models.SlugField(max_length=40, unique=True)
    name = models.CharField(max_length=80)
    purpose = models.CharField(max_length=300, blank=True, default="")
    # Whether every member who may launch can open a notebook that was launched without a choice.
    shares_notebooks = models.BooleanField(default=False, db_default=False)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    objects = TenantQuerySet.as_manager()

    class Meta:
        ordering = ["slug"]
        verbose_name = "team"

    def __str__(self) -> str:
        return self.slug


constraint_sentence(
    "tenants_tenant_slug_key",
    "slug_taken",
    "A team with this name already exists. Choose another name, or request to join that team.",
    field="slug",
)


class ApproverFor(models.Model):
    """What an approver decides: one class, or all of them when `gpu_class` is empty."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="approver_for", db_index=False
    )
    gpu_class = models.ForeignKey(GpuClass, on_delete=models.CASCADE, null=True, blank=True)

    class Meta:
        constraints = [models.UniqueConstraint("user", "gpu_class", name="approver_for_once", nulls_distinct=False)]

    def __str__(self) -> str:
        return f"{self.user_id} decides {self.gpu_class_id or 'all classes'}"


class ClassAccess(models.Model):
    """A team that may see and ask for a class which is not for everyone (`GpuClass.visibility`)."""

    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="class_access", db_index=False)
    gpu_class = models.ForeignKey(GpuClass, on_delete=models.CASCADE, related_name="access")

    class Meta:
        verbose_name = verbose_name_plural = "class access"
        constraints = [models.UniqueConstraint("tenant", "gpu_class", name="class_access_once")]

    def __str__(self) -> str:
        return f"{self.tenant_id} may use {self.gpu_class_id}"


class TermsAccepted(models.Model):
    """Which version of a class's terms a person has accepted, and when. Never changed: a new version is a new row."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", db_index=False)
    gpu_class = models.ForeignKey(GpuClass, on_delete=models.CASCADE, related_name="+")
    version = models.PositiveIntegerField()
    at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        constraints = [models.UniqueConstraint("user", "gpu_class", "version", name="terms_accepted_once")]

    def __str__(self) -> str:
        return f"{self.user_id} accepted version {self.version} of {self.gpu_class_id}"


# Between the key and the former name of a namespace that was given back.
GIVEN_BACK = "~"


class NamespaceQuerySet(models.QuerySet["Namespace"]):
    def visible_to(self, actor: Actor) -> NamespaceQuerySet:
        if actor.user is None or actor.sees_all:
            return self
        return self.filter(in_teams_of(actor, "tenant__"))


class Namespace(Due):
    """The unit that is provisioned, suspended and closed. Owner label `tenants.namespace.<pk>`."""

    class Wanted(models.TextChoices):
        ACTIVE = "active", "active"
        SUSPENDED = "suspended", "suspended"
        CLOSED = "closed", "closed"

    class Origin(models.TextChoices):
        PORTAL = "", "created by the portal"
        # It exists, and stays as it is until its adoption is agreed on (operations/adoption).
        UNADOPTED = "unadopted", "not adopted yet"
        ADOPTED = "adopted", "adopted"

    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="namespaces")
    cluster = models.ForeignKey(Cluster, on_delete=models.PROTECT, related_name="namespaces", db_index=False)
    name = models.CharField(max_length=63)
    wanted = models.CharField(max_length=10, choices=Wanted, default=Wanted.ACTIVE)
    # The instant for which the quota in the cluster was computed: grants start and end at instants.
    applied_as_of = models.DateTimeField(null=True, blank=True)
    # Closed: running workloads continue until `closes_at`, volumes are kept until `volumes_until`; then everything is
    # deleted. From `gone_at` on nothing of it is in the cluster.
    closes_at = models.DateTimeField(null=True, blank=True)
    volumes_until = models.DateTimeField(null=True, blank=True)
    gone_at = models.DateTimeField(null=True, blank=True)
    # A person's trial: a rule closes it if it is unused for a while (tenants/lifecycle/trial_expiry/actions.py).
    is_trial = models.BooleanField(default=False, db_default=False)
    origin = models.CharField(
        max_length=9, choices=Origin, blank=True, default=Origin.PORTAL, db_default="", editable=False
    )

    objects = NamespaceQuerySet.as_manager()

    class Meta(Due.Meta):
        constraints = [
            models.UniqueConstraint("cluster", "name", name="namespace_name_once"),
            models.CheckConstraint(
                condition=Q(wanted="closed", closes_at__isnull=False, volumes_until__gte=models.F("closes_at"))
                | (~Q(wanted="closed") & Q(closes_at=None, volumes_until=None, gone_at=None)),
                name="namespace_closed_with_its_instants",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def name_in_cluster(self) -> str:
        """Also of a namespace that was given back, whose `name` leads to nothing any more (see `given_back_name`)."""
        return self.name.rpartition(GIVEN_BACK)[2]


def given_back_name(row: Namespace) -> str:
    """No namespace of a cluster can have such a name. Another team may adopt the namespace: neither do reads by its
    name find the former team, nor do those of the former team find what is in it.
    """
    return f"{row.pk}{GIVEN_BACK}{row.name}"[:63]


class QuotaRequestQuerySet(models.QuerySet["QuotaRequest"]):
    def visible_to(self, actor: Actor) -> QuotaRequestQuerySet:
        """Requests of the actor's teams, and those that it decides as a delegate; all for staff."""
        if actor.user is None or actor.sees_all:
            return self
        theirs = Q(tenant__in=Membership.objects.of(actor).values("tenant"))
        if actor.confined_to:
            return self.filter(theirs)
        is_deputy, of_class = delegation_filters(actor.user)
        lent = QuotaLine.objects.filter(of_class).values("request")
        return self.filter(theirs | (is_deputy & Q(pk__in=lent)))


class QuotaRequest(models.Model):
    """A request by a person with a justification. Its lines are decided one by one; its state is derived from them."""

    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="requests")
    filed_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    filed_at = models.DateTimeField(db_default=Now(), editable=False)
    justification = models.TextField(max_length=2000)

    objects = QuotaRequestQuerySet.as_manager()

    class Meta:
        ordering = ["-id"]

    def __str__(self) -> str:
        return f"request #{self.pk}"


class QuotaLine(models.Model):
    class Kind(models.TextChoices):
        BASE = "base", "new total"
        BOOST = "boost", "temporary increase"
        # Filed by staff: a lower total from a date on, until the end of the grant that it cuts.
        RECLAIM = "reclaim", "quota reduction"

    class State(models.TextChoices):
        PENDING = "pending", "pending"
        APPROVED = "approved", "approved"
        DENIED = "denied", "denied"
        WITHDRAWN = "withdrawn", "withdrawn"

    # Decisions by people change the state by compare-and-set along this table; every other change is refused.
    TRANSITIONS = {State.PENDING: {State.APPROVED, State.DENIED, State.WITHDRAWN}}

    request = models.ForeignKey(QuotaRequest, on_delete=models.PROTECT, related_name="lines")
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+")
    gpu_class = models.ForeignKey(GpuClass, on_delete=models.PROTECT, related_name="lines")
    kind = models.CharField(max_length=7, choices=Kind, default=Kind.BASE)
    asked_units = models.PositiveIntegerField()
    asked_from = models.DateTimeField()
    asked_until = models.DateTimeField()
    decided_units = models.PositiveIntegerField(null=True, blank=True)
    decided_from = models.DateTimeField(null=True, blank=True)
    decided_until = models.DateTimeField(null=True, blank=True)
    # Of the grant that the decision makes.
    decided_grace = models.DurationField(null=True, blank=True)
    state = models.CharField(max_length=10, choices=State, default=State.PENDING)
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    decided_at = models.DateTimeField(null=True, blank=True)
    rule = models.CharField(max_length=60, blank=True, default="")
    reason = models.CharField(max_length=500, blank=True, default="")
    # What the approver saw when deciding.
    facts = models.JSONField(default=dict, blank=True)

    class Meta:
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(
                "tenant", "gpu_class", condition=Q(state="pending"), name="one_pending_line_a_class"
            ),
            models.CheckConstraint(condition=Q(asked_until__gt=models.F("asked_from")), name="line_asked_period"),
            models.CheckConstraint(
                condition=~Q(state="approved")
                | Q(
                    decided_units__isnull=False, decided_from__isnull=False, decided_until__gt=models.F("decided_from")
                ),
                name="line_decided_period",
            ),
            models.CheckConstraint(
                condition=Q(decided_grace__isnull=True)
                | Q(decided_grace__gte=timedelta(0), decided_grace__lte=GRACE_MAX),
                name="line_decided_grace",
            ),
        ]

    def __str__(self) -> str:
        return f"line {self.pk}: {self.asked_units} {self.gpu_class_id}, {self.state}"


constraint_sentence(
    "one_pending_line_a_class",
    "already_pending",
    "A request for this class is already pending. Withdraw it, or wait for the decision.",
    field="gpu_class",
)
constraint_sentence(
    "line_asked_period", "bad_period", "The end of the period must be after its start.", field="ends_at"
)


class Grant(models.Model):
    """Units of a class for a team over a period. Moving the end forward is the only change that a grant may have."""

    class Kind(models.TextChoices):
        BASE = "base", "base"
        BOOST = "boost", "temporary increase"

    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="grants")
    gpu_class = models.ForeignKey(GpuClass, on_delete=models.PROTECT, related_name="grants")
    kind = models.CharField(max_length=5, choices=Kind, default=Kind.BASE)
    units = models.PositiveIntegerField()
    period = DateTimeRangeField()
    # Running workloads continue undisturbed this long after the end; no new ones start.
    grace = models.DurationField(default=GRACE, db_default=GRACE)
    line = models.ForeignKey(QuotaLine, on_delete=models.PROTECT, null=True, blank=True, related_name="grants")

    class Meta:
        # For sums of what is allocated from now on, without reading grants that are over
        # (tenants/grants/overcommit/queries.py).
        indexes = [
            models.Index("gpu_class", Upper("period"), include=["units", "period"], name="grant_class_ends"),
            models.Index("gpu_class", Lower("period"), name="grant_class_starts"),
        ]
        constraints = [
            models.CheckConstraint(condition=Q(grace__gte=timedelta(0)), name="grant_grace_not_negative"),
            ExclusionConstraint(
                name="one_base_grant_at_a_time",
                expressions=[
                    ("tenant", RangeOperators.EQUAL),
                    ("gpu_class", RangeOperators.EQUAL),
                    ("period", RangeOperators.OVERLAPS),
                ],
                condition=Q(kind="base"),
            ),
            models.CheckConstraint(condition=Q(period__isempty=False), name="grant_period_not_empty"),
            models.CheckConstraint(
                condition=Q(period__startswith__isnull=False, period__endswith__isnull=False),
                name="grant_period_bounded",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.units} × {self.gpu_class}"


constraint_sentence(
    "one_base_grant_at_a_time",
    "grant_overlaps",
    "Another decision for this class was made in the meantime. Reload the request and decide again.",
)


class RequestComment(models.Model):
    """Comments on a request, in order; never changed. `asks_back`: an approver waits for the team's answer."""

    request = models.ForeignKey(QuotaRequest, on_delete=models.PROTECT, related_name="comments")
    author = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    at = models.DateTimeField(db_default=Now(), editable=False)
    text = models.TextField(max_length=2000)
    asks_back = models.BooleanField(default=False)

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return f"comment of {self.author_id} on request #{self.request_id}"


class Plan(Due):
    """The objects of a request's namespace as if its pending lines were approved, each with its dry-run result."""

    request = models.OneToOneField(QuotaRequest, on_delete=models.CASCADE, related_name="plan")
    # [{"kind", "namespace", "name", "change": "create|change|same|delete", "difference": [...], "result", "code",
    # "text"}]
    objects_planned = models.JSONField(default=list)
    made_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"plan of request #{self.request_id}"
