"""Workloads, their runs and their volumes. A Workload is the declaration and a Run is one attempt. A Run is kept as
history; rows of the mirror are not.
"""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.db.models.fields.json import KT
from django.db.models.functions import Now

from accounts.core.actor import Actor
from catalog.models import GpuClass
from cluster.manifests.site import READ_WRITE_MANY, READ_WRITE_ONCE, OfferedStorage
from portal.core.due import Due
from portal.core.errors import constraint_sentence
from portal.core.hints import BACKGROUND
from tenants.members.models import in_teams_of
from tenants.models import Namespace, Tenant

# Models of rooms: Django finds them here.
from workloads.allocations.models import AllocationInterval as AllocationInterval
from workloads.budgets.models import TeamBudget as TeamBudget
from workloads.core.constraints import GROUP_LIMIT, STILL_RUNNING
from workloads.credentials.registries.models import RegistryCredential as RegistryCredential
from workloads.credentials.secrets.models import TeamSecret as TeamSecret
from workloads.forecast.models import StartPrediction as StartPrediction
from workloads.logs.models import RunLog as RunLog


class Volume(Due):
    """A PersistentVolumeClaim of a namespace, owner label `workloads.volume.<pk>`; it outlives the workloads that
    attach it. The worker makes the claim with the first run that needs it, and deletes it after a grace period
    (workloads/storage/policy.py); its name is free when it is gone.
    """

    class AccessMode(models.TextChoices):
        READ_WRITE_ONCE = READ_WRITE_ONCE, READ_WRITE_ONCE
        READ_WRITE_MANY = READ_WRITE_MANY, READ_WRITE_MANY

    namespace = models.ForeignKey(Namespace, on_delete=models.PROTECT, related_name="volumes")
    name = models.CharField(max_length=40)
    size_gib = models.PositiveIntegerField()
    # As the site profile offered it when the volume was created; "": the default class of the cluster.
    storage_class = models.CharField(max_length=253, blank=True, default="", db_default="")
    access_mode = models.CharField(
        max_length=13, choices=AccessMode, default=AccessMode.READ_WRITE_ONCE, db_default=AccessMode.READ_WRITE_ONCE
    )
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    delete_requested_at = models.DateTimeField(null=True, blank=True)
    gone_at = models.DateTimeField(null=True, blank=True)

    class Meta(Due.Meta):
        constraints = [
            models.UniqueConstraint("namespace", "name", condition=Q(gone_at=None), name="volume_name_once"),
            models.CheckConstraint(condition=Q(size_gib__gte=1), name="volume_size"),
            models.CheckConstraint(
                condition=Q(gone_at=None) | Q(delete_requested_at__isnull=False), name="volume_gone_when_asked"
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def storage(self) -> OfferedStorage:
        return OfferedStorage(self.storage_class, self.access_mode)


class WorkloadQuerySet(models.QuerySet["Workload"]):
    def visible_to(self, actor: Actor) -> WorkloadQuerySet:
        found = self.filter(deleted_at=None)
        if actor.user is None or actor.sees_all:
            return found
        return found.filter(in_teams_of(actor, "tenant__"))


class Workload(Due):
    """Owner label `workloads.workload.<pk>`. `origin` is the first label of a notebook's own host name."""

    class Kind(models.TextChoices):
        NOTEBOOK = "notebook", "notebook"
        JOB = "job", "job"

    class Visibility(models.TextChoices):
        PRIVATE = "private", "private"
        TEAM = "team", "team"

    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="workloads")
    namespace = models.ForeignKey(Namespace, on_delete=models.PROTECT, related_name="workloads")
    name = models.CharField(max_length=40)
    kind = models.CharField(max_length=10, choices=Kind)
    origin = models.CharField(max_length=20, unique=True)
    gpu_class = models.ForeignKey(GpuClass, on_delete=models.PROTECT, related_name="workloads")
    units = models.PositiveIntegerField()
    image = models.CharField(max_length=300)
    # Named by reference below a prefix that is allowed to the team; not of the catalog.
    own_image = models.BooleanField(default=False, db_default=False)
    command = models.JSONField(default=list, blank=True)
    volume = models.ForeignKey(Volume, on_delete=models.PROTECT, null=True, blank=True, related_name="workloads")
    # workloads.launch.options.Options as JSON: what differs from the class's defaults.
    options = models.JSONField(default=dict, db_default={}, blank=True)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    # Who can open a notebook: `created_by` alone, or every member who may launch. Without effect for a job. Rows from
    # before the column stay open to the team.
    visibility = models.CharField(
        max_length=10, choices=Visibility, default=Visibility.PRIVATE, db_default=Visibility.TEAM
    )
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    delete_requested_at = models.DateTimeField(null=True, blank=True)
    deleted_at = models.DateTimeField(null=True, blank=True)

    # A job array, or a script of one team, launches hundreds at once.
    turns_by = "tenant_id"
    # Rows that are kept after they were deleted own nothing in the cluster any more (cluster/apply/queries.py).
    IS_LIVE = Q(deleted_at=None)

    objects = WorkloadQuerySet.as_manager()

    class Meta(Due.Meta):
        constraints = [
            models.UniqueConstraint("namespace", "name", condition=Q(deleted_at=None), name="workload_name_once"),
            models.CheckConstraint(condition=Q(units__gte=0), name="workload_units"),
        ]
        # Staff search by the beginning of the name, in all teams.
        indexes = [
            *Due.Meta.indexes,
            models.Index(
                fields=["name"],
                opclasses=["varchar_pattern_ops"],
                condition=Q(deleted_at=None),
                name="workload_by_name",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def workers(self) -> int:
        """Pods of one run, each with `units`."""
        return int(self.options.get("workers") or 1)

    @property
    def total_units(self) -> int:
        return self.units * self.workers


constraint_sentence(
    "workload_name_once",
    "name_taken",
    "Your team already has a workload with this name. Choose another name, or start that workload again.",
    field="name",
)


class Run(models.Model):
    """One attempt. Reconcile fills each column once from what it observed; nothing overwrites it."""

    class Outcome(models.TextChoices):
        SUCCEEDED = "succeeded", "succeeded"
        FAILED = "failed", "failed"
        STOPPED = "stopped", "stopped"
        LOST = "lost", "lost"

    workload = models.ForeignKey(Workload, on_delete=models.PROTECT, related_name="runs", db_index=False)
    number = models.PositiveIntegerField()
    # cluster.manifests.run_spec.RunSpec as JSON, frozen at launch: class, units, price, image, sizes, tolerations, ….
    spec = models.JSONField()
    requested_at = models.DateTimeField(db_default=Now(), editable=False)
    requested_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    # As operators changed it while it waited, one of run_spec.PRIORITIES; "": as frozen.
    priority = models.CharField(max_length=20, blank=True, default="", db_default="")
    stop_requested_at = models.DateTimeField(null=True, blank=True)
    # Concurrency group, for example a branch: a newer push of the same group may stop it. "": none.
    group = models.CharField(max_length=GROUP_LIMIT, blank=True, default="", db_default="")
    # Who requested another run, as the workload is declared then, when this one has ended; None: no other run.
    next_wanted_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    admitted_at = models.DateTimeField(null=True, blank=True)
    # When it was requeued after preemption. None while it is admitted, and before its first admission.
    put_back_at = models.DateTimeField(null=True, blank=True)
    started_at = models.DateTimeField(null=True, blank=True)
    ready_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    outcome = models.CharField(max_length=10, choices=Outcome, blank=True, default="")
    reason = models.CharField(max_length=60, blank=True, default="")
    message = models.CharField(max_length=500, blank=True, default="")
    exit_code = models.IntegerField(null=True, blank=True)
    # workloads.status.failure_record.FailureRecord as JSON, of a run that failed: the cluster's text behind its
    # message, and its last progress. {} of every other run.
    kept = models.JSONField(default=dict, db_default={}, blank=True)
    preemptions = models.PositiveIntegerField(default=0)
    # Keys of the recorded interruptions that were no preemptions; see workloads/runs/disruption_notices.py.
    disruptions = models.JSONField(default=list, db_default=[], blank=True)
    # When its time limit is reached, from its last start; None while not started, and for runs without a limit.
    ends_at = models.DateTimeField(null=True, blank=True)
    # What extensions added to the spec's run_minutes.
    extended_minutes = models.PositiveIntegerField(default=0, db_default=0)
    # Why a rule or a newer push stopped it; "" if a user did, or if it was not stopped.
    stop_reason = models.CharField(max_length=60, blank=True, default="", db_default="")
    stop_message = models.CharField(max_length=500, blank=True, default="", db_default="")
    # Maintenance moves it off its node: since when, why, and when Kueue had its units back and no pod
    # was left. All empty otherwise.
    drain_requested_at = models.DateTimeField(null=True, blank=True)
    drained_at = models.DateTimeField(null=True, blank=True)
    drain_reason = models.CharField(max_length=300, blank=True, default="", db_default="")
    # What its people chose for the drain of its node, by key of the maintenance (operations/maintenance/choices). One
    # without a key here does what it does by default.
    drain_choices = models.JSONField(default=dict, db_default={}, blank=True)
    # Which key the token of a notebook's server was made with (credentials.notebook_token.key_id); "" until it is made.
    token_key = models.CharField(max_length=16, blank=True, default="", db_default="")

    class Meta:
        ordering = ["-number"]
        constraints = [
            models.UniqueConstraint("workload", "number", name="run_number_once"),
            models.UniqueConstraint("workload", condition=Q(ended_at=None), name="one_run_at_a_time"),
            models.CheckConstraint(condition=Q(ended_at=None) | ~Q(outcome=""), name="run_ended_with_outcome"),
        ]
        indexes = [
            # Recent starts are read whenever a run is queued.
            models.Index(fields=["started_at"], name="run_started"),
            # What a push of the group stops.
            models.Index(
                fields=["group"],
                condition=~Q(group="") & (Q(ended_at=None) | Q(next_wanted_by__isnull=False)),
                name="run_of_group",
            ),
            # Runs that continue on a class that was retired, and those of a person whose account is suspended.
            models.Index(KT("spec__gpu_class"), condition=Q(ended_at=None), name="run_live_class"),
            models.Index(fields=["requested_by"], condition=Q(ended_at=None), name="run_live_person"),
            # Metrics: the waits of a day, and the runs that the topology manager has ever refused.
            models.Index(fields=["admitted_at"], name="run_admitted"),
            models.Index(fields=["reason"], condition=Q(reason="topology_refused"), name="run_topology_refused"),
            # Runs that wait for their first start: few, however many run.
            models.Index(fields=["requested_at"], condition=Q(ended_at=None, admitted_at=None), name="run_waiting"),
        ]

    def __str__(self) -> str:
        return f"run {self.number} of {self.workload_id}"

    @property
    def workers(self) -> int:
        return int(self.spec.get("workers", 1))

    @property
    def units_each(self) -> int:
        """Of one worker."""
        return int(self.spec.get("units", 0))

    @property
    def total_units(self) -> int:
        """Of all its workers."""
        return self.units_each * self.workers

    @property
    def holds_units(self) -> bool:
        """While it has not ended; as workloads.core.unit_sql.HOLDS."""
        return self.admitted_at is not None and self.put_back_at is None


class NotebookWatch(Due):
    """Use of a notebook's run on a class with an idle rule: what its server answered, and the stop that follows.

    `answered_at`, `last_activity` and `evidence` (workloads.lifetime.idle.policy.evidence) are of the last answer;
    `asked_at` is later while it does not answer. `idle_since` None: in use, or unknown. `stops_at`: the announced
    stop.
    """

    run = models.OneToOneField(Run, on_delete=models.CASCADE, related_name="watch")
    asked_at = models.DateTimeField(null=True, blank=True)
    answered_at = models.DateTimeField(null=True, blank=True)
    last_activity = models.DateTimeField(null=True, blank=True)
    evidence = models.JSONField(default=dict, blank=True)
    problem = models.CharField(max_length=200, blank=True, default="")
    idle_since = models.DateTimeField(null=True, blank=True)
    warned_at = models.DateTimeField(null=True, blank=True)
    stops_at = models.DateTimeField(null=True, blank=True)
    kept_until = models.DateTimeField(null=True, blank=True)
    kept_reason = models.CharField(max_length=200, blank=True, default="")
    kept_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )

    queue = BACKGROUND

    class Meta(Due.Meta):
        constraints = [
            models.CheckConstraint(
                condition=Q(warned_at=None, stops_at=None) | Q(warned_at__isnull=False, stops_at__gt=F("warned_at")),
                name="watch_warned_before_it_stops",
            ),
            models.CheckConstraint(condition=Q(kept_until=None) | ~Q(kept_reason=""), name="watch_kept_for_a_reason"),
        ]

    def __str__(self) -> str:
        return f"watch of run {self.run_id}"


constraint_sentence("one_run_at_a_time", "still_running", STILL_RUNNING)
# Two people who start it at the same moment ask for the same number.
constraint_sentence("run_number_once", "still_running", STILL_RUNNING)
constraint_sentence(
    "volume_name_once", "volume_taken", "Your team already has a volume with this name.", field="volume"
)


class Ticket(models.Model):
    """A one-time pass from the portal to a notebook's own origin: bound to person and notebook, 30 s, used once."""

    digest = models.CharField(max_length=64, primary_key=True)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    workload = models.ForeignKey(Workload, on_delete=models.CASCADE, related_name="+")
    session_key = models.CharField(max_length=40)
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"ticket of {self.user_id} for {self.workload_id}"


class NotebookSession(models.Model):
    """What a redeemed ticket becomes: the digest of the host-only cookie of one notebook's origin."""

    digest = models.CharField(max_length=64, primary_key=True)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    workload = models.ForeignKey(Workload, on_delete=models.CASCADE, related_name="+")
    # The portal session that opened it: ends with it.
    session_key = models.CharField(max_length=40)
    expires_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"notebook session of {self.user_id} for {self.workload_id}"
