"""The cluster, what we sent to it (AppliedObject) and what was seen in it (mirror rows, removed pods).

Mirror rows are a cache that may be lost: UNLOGGED tables, joined by values, no foreign keys, written only by the
watcher. Every batch touches `MirrorEpoch` first; when that row is gone (PostgreSQL emptied the unlogged tables after a
crash), the mirror is unknown until everything was listed again.
"""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings
from django.db import models
from django.db.models.functions import Now

from cluster.manifests.site import SiteProfile, site_profile


class Cluster(models.Model):
    class QueueSystem(models.TextChoices):
        KUEUE = "kueue", "Kueue"
        NONE = "none", "none"

    name = models.SlugField(max_length=40, unique=True)
    notebooks_domain = models.CharField(max_length=200)
    # The Cohort whose idle quota may be borrowed. A site that already has a Cohort of that name sets another.
    cohort = models.CharField(max_length=63, default="gpu-portal")
    queue_system = models.CharField(max_length=10, choices=QueueSystem, default=QueueSystem.KUEUE)
    # The data of the ConfigMap `site`, written by the watcher. Here and not in the mirror, which may be empty for a
    # moment: a Job is made once, and must not be made by the defaults then.
    site = models.JSONField(default=dict, db_default={}, blank=True, editable=False)
    # While it is set, no process of the portal writes to the cluster: see cluster.observe_only.
    observe_only_since = models.DateTimeField(null=True, blank=True, editable=False)
    observe_only_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, blank=True, editable=False, related_name="+"
    )
    # Of the namespace kube-system, which lives as long as its cluster: see cluster.replacement. "": not known yet.
    uid = models.CharField(max_length=36, db_default="", default="", blank=True, editable=False)
    # The cluster that the watcher reaches instead, and since when; "" while it reaches its own.
    other_uid = models.CharField(max_length=36, db_default="", default="", blank=True, editable=False)
    other_since = models.DateTimeField(null=True, blank=True, editable=False)

    def __str__(self) -> str:
        return self.name

    @property
    def site_profile(self) -> SiteProfile:
        return site_profile(self.site)

    @property
    def is_observe_only(self) -> bool:
        return self.observe_only_since is not None

    @property
    def has_kueue(self) -> bool:
        return self.queue_system == self.QueueSystem.KUEUE


class Certificate(models.Model):
    """How long a certificate or token is valid, as a worker read it last."""

    class Name(models.TextChoices):
        PORTAL = "portal", "certificate of the portal"
        API_SERVER = "api-server", "certificate of the API server"
        API_CA = "api-ca", "CA of the API server"
        WORKER = "worker", "client certificate of the worker"
        TOKEN = "worker-token", "token of the worker"

    FORGOTTEN_AFTER = timedelta(days=1)

    name = models.CharField(max_length=20, choices=Name, unique=True)
    begins_at = models.DateTimeField()
    ends_at = models.DateTimeField()
    read_at = models.DateTimeField(db_default=Now())


class AppliedObject(models.Model):
    """One object that a row wants in the cluster: what was sent, when, and the outcome."""

    class Result(models.TextChoices):
        APPLIED = "applied", "applied"
        REFUSED = "refused", "refused"
        FOREIGN = "foreign", "not created by the portal"
        TERMINATING = "terminating", "terminating"

    cluster = models.ForeignKey(Cluster, on_delete=models.PROTECT, db_index=False)
    owner = models.CharField(max_length=120, db_index=True)
    kind = models.CharField(max_length=60)
    namespace = models.CharField(max_length=63, blank=True, default="")
    name = models.CharField(max_length=253)
    uid = models.CharField(max_length=36, blank=True, default="")
    manifest_hash = models.CharField(max_length=64, blank=True, default="")
    resource_version = models.CharField(max_length=30, blank=True, default="")
    sent_at = models.DateTimeField(db_default=Now())
    result = models.CharField(max_length=12, choices=Result)
    code = models.CharField(max_length=60, blank=True, default="")
    text = models.CharField(max_length=300, blank=True, default="")
    # Seen by the watcher, repaired by the next reconcile: {"fields": [...], "manager": "...", "since": "..."} or {}.
    difference = models.JSONField(default=dict)

    class Meta:
        constraints = [models.UniqueConstraint("cluster", "kind", "namespace", "name", name="applied_object_once")]
        # The watcher finds the row of a deleted object by its uid.
        indexes = [models.Index(fields=["uid"], name="applied_object_uid")]

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}: {self.result}"


class ObjectDrift(models.Model):
    """How often another writer changed one of our objects in one way, and what became of it. `key`: a hash of manager
    and fields. `since`: when the last of these changes was made, as the cluster says it.
    """

    class Outcome(models.TextChoices):
        REPAIRED = "repaired", "repaired"
        REFUSED = "refused", "not repaired"

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, db_index=False)
    owner = models.CharField(max_length=120, db_index=True)
    kind = models.CharField(max_length=60)
    namespace = models.CharField(max_length=63, blank=True, default="")
    name = models.CharField(max_length=253)
    key = models.CharField(max_length=64)
    manager = models.CharField(max_length=128, blank=True, default="")
    fields = models.JSONField(default=list)
    is_deletion = models.BooleanField(default=False)
    since = models.CharField(max_length=40, blank=True, default="")
    times = models.PositiveIntegerField(default=1)
    outcome = models.CharField(max_length=10, choices=Outcome)
    first_at = models.DateTimeField()
    last_at = models.DateTimeField(db_index=True)

    class Meta:
        constraints = [
            models.UniqueConstraint("cluster", "kind", "namespace", "name", "key", name="object_drift_once"),
        ]


class MirrorEpoch(models.Model):
    """One row per cluster: the mirror's epoch. `heard_at`: last message from the API server; `beat_at`: the watcher was
    alive; `format`: digest of the code that made the records (a new one starts a new epoch).
    """

    cluster_id = models.BigIntegerField(primary_key=True)
    epoch = models.BigIntegerField()
    heard_at = models.DateTimeField()
    beat_at = models.DateTimeField(db_default=Now())
    format = models.CharField(max_length=16, default="")


class MirrorKind(models.Model):
    """One row per kind: `listed_at` is the LISTED mark; NULL means that rows of this kind may be missing."""

    cluster_id = models.BigIntegerField()
    kind = models.CharField(max_length=60)
    epoch = models.BigIntegerField()
    listed_at = models.DateTimeField(null=True)
    heard_at = models.DateTimeField()
    resource_version = models.CharField(max_length=30, default="")
    problem = models.CharField(max_length=300, default="")

    class Meta:
        constraints = [models.UniqueConstraint("cluster_id", "kind", name="mirror_kind_once")]


class MirrorRow(models.Model):
    """The columns of every mirrored object; `record` has the other values, by kind (see mirror/records)."""

    cluster_id = models.BigIntegerField()
    namespace = models.CharField(max_length=63, default="")
    name = models.CharField(max_length=253)
    uid = models.CharField(max_length=36)
    resource_version = models.BigIntegerField()
    owner = models.CharField(max_length=120, default="")
    created_at = models.DateTimeField()
    deleting_since = models.DateTimeField(null=True)
    record = models.JSONField()

    class Meta:
        abstract = True


class MirrorNode(MirrorRow):
    schedulable = models.BooleanField()
    ready = models.BooleanField()

    class Meta:
        constraints = [models.UniqueConstraint("cluster_id", "name", name="mirror_node_once")]


class MirrorPod(MirrorRow):
    node = models.CharField(max_length=253, default="")
    phase = models.CharField(max_length=20)
    run = models.CharField(max_length=63, default="")
    gpu_class = models.CharField(max_length=63, default="")

    class Meta:
        constraints = [models.UniqueConstraint("cluster_id", "namespace", "name", name="mirror_pod_once")]
        indexes = [
            models.Index(fields=["cluster_id", "owner"], name="mirror_pod_owner"),
            models.Index(fields=["cluster_id", "node"], name="mirror_pod_node"),
        ]


class PodRemoval(models.Model):
    """One of our pods that the cluster removed (condition DisruptionTarget), as it was last seen. Written when its
    mirror row goes and kept for a day, for an owner that looks when the pod is replaced already.

    LOGGED, unlike the mirror, and of columns, not of a record: nothing can list it again.
    """

    cluster_id = models.BigIntegerField()
    namespace = models.CharField(max_length=63)
    uid = models.CharField(max_length=36)
    owner = models.CharField(max_length=120)
    run = models.CharField(max_length=63)
    node = models.CharField(max_length=253)
    phase = models.CharField(max_length=20)
    reason = models.CharField(max_length=1024)
    message = models.CharField(max_length=1024)
    disruption = models.CharField(max_length=1024)
    disruption_message = models.CharField(max_length=1024)
    disrupted_at = models.DateTimeField(null=True)
    # When its main container started; None: it never ran.
    ran_since = models.DateTimeField(null=True)
    removed_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [models.UniqueConstraint("cluster_id", "uid", name="pod_removal_once")]
        indexes = [models.Index(fields=["cluster_id", "owner"], name="pod_removal_owner")]


class AdmissionPeriod(models.Model):
    """From when to when a Workload of Kueue was admitted, by its conditions. Written by the watcher from each state
    that it sees; an ended period is kept for a week, for an owner that looks late.

    `ended_at` None: admitted now. `reason`: of its eviction, "Finished", "Deleted", or "Unseen" if it was admitted
    again. `is_exact` False: nobody watched when it ended. LOGGED, unlike the mirror: nothing can list it again.
    """

    cluster_id = models.BigIntegerField()
    uid = models.CharField(max_length=36)
    job_uid = models.CharField(max_length=36)
    # {resource: flavor}
    flavors = models.JSONField(default=dict)
    admitted_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    reason = models.CharField(max_length=120, default="")
    is_exact = models.BooleanField(default=True)

    class Meta:
        constraints = [
            models.UniqueConstraint("cluster_id", "uid", "admitted_at", name="admission_period_once"),
        ]
        indexes = [
            models.Index(fields=["job_uid"], name="admission_period_job"),
            models.Index(fields=["ended_at"], name="admission_period_end"),
        ]


class MirrorJob(MirrorRow):
    run = models.CharField(max_length=63, default="")

    class Meta:
        constraints = [models.UniqueConstraint("cluster_id", "namespace", "name", name="mirror_job_once")]
        indexes = [models.Index(fields=["cluster_id", "owner"], name="mirror_job_owner")]


class MirrorWorkload(MirrorRow):
    """A Kueue Workload; `owner` is copied from its Job by the watcher when it knows it."""

    queue = models.CharField(max_length=253, default="")
    job_uid = models.CharField(max_length=36, default="")

    class Meta:
        constraints = [models.UniqueConstraint("cluster_id", "namespace", "name", name="mirror_workload_once")]
        indexes = [models.Index(fields=["cluster_id", "job_uid"], name="mirror_workload_job")]


class MirrorObject(MirrorRow):
    """All other kinds: namespaces, quotas, policies, bindings, queues, flavors, cohorts, claims, slices."""

    kind = models.CharField(max_length=60)

    class Meta:
        constraints = [models.UniqueConstraint("cluster_id", "kind", "namespace", "name", name="mirror_object_once")]
        indexes = [models.Index(fields=["cluster_id", "owner"], name="mirror_object_owner")]


class MirrorWarning(models.Model):
    """A Warning event of one of our namespaces, newest text per (object, reason)."""

    cluster_id = models.BigIntegerField()
    namespace = models.CharField(max_length=63)
    name = models.CharField(max_length=253)
    uid = models.CharField(max_length=36)
    resource_version = models.BigIntegerField()
    object_kind = models.CharField(max_length=60)
    object_name = models.CharField(max_length=253)
    object_uid = models.CharField(max_length=36, default="")
    reason = models.CharField(max_length=120)
    message = models.CharField(max_length=1024)
    count = models.PositiveIntegerField()
    first_at = models.DateTimeField()
    last_at = models.DateTimeField()
    source = models.CharField(max_length=120, default="")

    class Meta:
        constraints = [models.UniqueConstraint("cluster_id", "namespace", "name", name="mirror_warning_once")]
        indexes = [
            models.Index(fields=["cluster_id", "object_uid", "reason", "-last_at"], name="mirror_warning_newest")
        ]


class MirrorLease(models.Model):
    """One row per component of the cluster that renews a Lease. `renewed_at`: when a renewal was last seen, on the
    database's clock; `renewal`: the component's own time of it.
    """

    cluster_id = models.BigIntegerField()
    component = models.CharField(max_length=20)
    renewal = models.CharField(max_length=40)
    renewed_at = models.DateTimeField()
    read_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint("cluster_id", "component", name="mirror_lease_once")]


class MirrorNews(models.Model):
    """News that is not yet delivered: wake `owner`, record `difference` at the AppliedObject of that uid.

    Written with the mirror rows and removed when delivered, so that news survive a crash of the watcher.
    """

    cluster_id = models.BigIntegerField(db_index=True)
    owner = models.CharField(max_length=120)
    object_uid = models.CharField(max_length=36, default="")
    difference = models.JSONField(default=dict)


class MirrorUnits(models.Model):
    """The units of one resource on one node, and those in use; PostgreSQL counts them whenever a mirror row changes.

    Triggers maintain it (migration 0006) in the transaction of the change; no other code writes it. `device`: for units
    of a ResourceSlice, its driver, distinguishing attributes and memory in bytes. Nodes of equal `shape` have equal
    labels except the host name, equal taints and resources of equal names. Only cpu (millicores) and resources with a
    slash in their name.
    """

    cluster_id = models.BigIntegerField()
    node = models.CharField(max_length=253)
    shape = models.UUIDField()
    ready = models.BooleanField()
    schedulable = models.BooleanField()
    resource = models.CharField(max_length=253)
    device = models.JSONField()
    capacity = models.BigIntegerField()
    allocatable = models.BigIntegerField()
    used = models.BigIntegerField()

    class Meta:
        constraints = [models.UniqueConstraint("cluster_id", "node", "resource", "device", name="mirror_units_once")]


class MirrorUse(models.Model):
    """How many unfinished pods of one team and class on one node hold the same `amount` of a resource.

    Maintained by the triggers of `MirrorUnits`. `resource` "": devices of the pods' claims. Only cpu (millicores) and
    resources with a slash in their name.
    """

    cluster_id = models.BigIntegerField()
    node = models.CharField(max_length=253)
    namespace = models.CharField(max_length=63)
    gpu_class = models.CharField(max_length=63)
    resource = models.CharField(max_length=253)
    amount = models.BigIntegerField()
    pods = models.BigIntegerField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                "cluster_id", "namespace", "gpu_class", "resource", "node", "amount", name="mirror_use_once"
            )
        ]
        indexes = [models.Index(fields=["cluster_id", "node"], name="mirror_use_node")]
