"""Classes, images and the pool. The axes of a class are orthogonal and never mixed in one string (see GpuClass)."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from catalog.banner.models import Banner as Banner  # as those below: so that Django finds it
from catalog.classes.models import ClassPrice as ClassPrice
from catalog.classes.validation.run_limits import (
    DAMPING_MINUTES,
    DAMPING_MINUTES_MOST,
    IDLE_MINUTES,
    IDLE_MINUTES_LEAST,
    IDLE_MINUTES_MOST,
    LOG_DAYS,
    LOG_DAYS_MOST,
    NODE_MINUTES,
    NODE_MINUTES_MOST,
    RUN_HOURS_MOST,
)
from catalog.interconnect.models import NodeMeasurement as NodeMeasurement
from catalog.pool.models import NodeUnits as NodeUnits
from catalog.trials.models import DeviceTrial as DeviceTrial
from cluster.models import Cluster
from portal.core.due import Due
from portal.core.errors import constraint_sentence
from portal.core.hints import BACKGROUND


class GpuClass(models.Model):
    class Sharing(models.TextChoices):
        NONE = "none", "not shared"
        TIME_SLICING = "time-slicing", "time-sliced"
        MPS = "mps", "MPS"

    class Interface(models.TextChoices):
        DEVICE_PLUGIN = "device-plugin", "device plugin"
        DRA = "dra", "dynamic resource allocation"
        NONE = "none", "no GPU"
        # One unit is 1 GiB of volumes. No workload runs on it.
        STORAGE = "storage", "storage"

    class Interconnect(models.TextChoices):
        NVSWITCH = "nvswitch", "NVSwitch"
        NVLINK = "nvlink", "NVLink"
        PCIE = "pcie", "PCIe"
        UNKNOWN = "unknown", "unknown"

    class LifeCycle(models.TextChoices):
        DRAFT = "draft", "draft"
        ACTIVE = "active", "active"
        RETIRING = "retiring", "retiring"
        RETIRED = "retired", "retired"

    class Visibility(models.TextChoices):
        EVERYONE = "everyone", "everyone"
        NAMED = "named", "named teams"

    class Kinds(models.TextChoices):
        ANY = "any", "notebooks and jobs"
        NOTEBOOK = "notebook", "notebooks only"
        JOB = "job", "jobs only"

    class IdleAction(models.TextChoices):
        OFF = "off", "none"
        TELL = "tell", "notify"
        STOP = "stop", "warn, then stop"

    cluster = models.ForeignKey(Cluster, on_delete=models.PROTECT, related_name="classes", db_index=False)
    slug = models.SlugField(max_length=40)
    name = models.CharField(max_length=80)
    summary = models.CharField(max_length=200, blank=True, default="")

    vendor = models.CharField(max_length=20, blank=True, default="")
    product = models.CharField(max_length=80, blank=True, default="")
    # "none", a MIG profile as the node names it ("1g.10gb", "1g.10gb.me"), or an AMD partition.
    partition = models.CharField(max_length=40, default="none")
    sharing = models.CharField(max_length=15, choices=Sharing, default=Sharing.NONE)
    replicas = models.PositiveIntegerField(default=1)
    interface = models.CharField(max_length=15, choices=Interface, default=Interface.DEVICE_PLUGIN)
    resource = models.CharField(
        max_length=120,
        blank=True,
        default="",
        help_text="Kubernetes resource: an extended resource (nvidia.com/gpu), or Kueue's name of a DRA device class",
    )
    device_class = models.CharField(max_length=120, blank=True, default="")
    device_selector = models.TextField(max_length=10240, blank=True, default="", help_text="CEL; DRA only")
    # No label states it: staff enter measured values, with source and date.
    interconnect = models.CharField(max_length=10, choices=Interconnect, default=Interconnect.UNKNOWN)
    interconnect_note = models.CharField(max_length=200, blank=True, default="")
    interconnect_on = models.DateField(null=True, blank=True)
    node_labels = models.JSONField(default=dict, blank=True, help_text="Labels that select this class's nodes")
    tolerations = models.JSONField(default=list, blank=True)
    topology = models.CharField(max_length=63, blank=True, default="", db_default="", help_text="Empty: hosts only")

    memory_mib = models.PositiveIntegerField(
        null=True, blank=True, help_text="GPU memory of one unit; empty when the nodes do not report it"
    )
    units_per_workload = models.PositiveIntegerField(default=8)
    cpu_per_unit = models.PositiveIntegerField(default=4)
    memory_gib_per_unit = models.PositiveIntegerField(default=16)
    price_per_unit_hour = models.DecimalField(max_digits=9, decimal_places=4, default=0)
    weight = models.DecimalField(max_digits=7, decimal_places=4, default=1, help_text="GPU equivalents per unit")
    promise_limit = models.PositiveIntegerField(
        "allocation limit", null=True, blank=True, help_text="Units; empty: allocatable units"
    )
    borrowing_limit = models.PositiveIntegerField(default=0, help_text="Units that one team may borrow")
    damping_minutes = models.PositiveIntegerField(
        default=DAMPING_MINUTES,
        db_default=DAMPING_MINUTES,
        help_text="Minutes for which a node has to report fewer units before lent quota falls; 0: at once",
    )
    max_units = models.PositiveIntegerField(
        null=True, blank=True, help_text="Units of all nodes that an autoscaler may add; empty: no nodes are added"
    )
    node_minutes = models.PositiveIntegerField(
        default=NODE_MINUTES, db_default=NODE_MINUTES, help_text="Usual minutes until an added node is ready"
    )
    kinds = models.CharField(max_length=10, choices=Kinds, default=Kinds.ANY, help_text="Allowed workloads")
    eligibility = models.CharField(max_length=300, blank=True, default="", help_text="Who may use it")
    # Version 0: no terms. A new version must be accepted again before the next launch.
    terms_version = models.PositiveIntegerField(default=0)
    terms = models.TextField(max_length=10000, blank=True, default="")
    # Named teams: tenants.ClassAccess.
    visibility = models.CharField(max_length=10, choices=Visibility, default=Visibility.EVERYONE)

    starter = models.BooleanField(
        "trial without a team", default=False, help_text="A user without a team may try one unit"
    )
    run_hours_limit = models.PositiveIntegerField(
        "time limit of a run (hours)",
        null=True,
        blank=True,
        help_text="From the start of the run; empty: no time limit",
    )
    idle_stop_minutes = models.PositiveIntegerField(
        null=True, blank=True, help_text="Idle minutes after which a notebook is stopped; empty: never"
    )
    idle_action = models.CharField(
        "action if GPUs are idle", choices=IdleAction, default=IdleAction.TELL, db_default=IdleAction.TELL,
        max_length=5, help_text="If the measured activity of a run's GPUs says so; never for a shared class",
    )  # fmt: skip
    idle_minutes = models.PositiveIntegerField(
        default=IDLE_MINUTES, db_default=IDLE_MINUTES,
        help_text="Minutes without GPU activity after which a run is idle",
    )  # fmt: skip
    production_limit = models.PositiveIntegerField(
        null=True,
        blank=True,
        help_text="Running and queued production units per team; empty: the team's quota",
    )
    log_retention_days = models.PositiveIntegerField(
        default=LOG_DAYS,
        db_default=LOG_DAYS,
        help_text="Days for which the log of an ended run is kept; 0: not kept",
    )

    life_cycle = models.CharField(max_length=10, choices=LifeCycle, default=LifeCycle.DRAFT)
    successor = models.ForeignKey("self", on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    retiring_message = models.CharField(max_length=300, blank=True, default="")
    runs_until = models.DateTimeField(null=True, blank=True, help_text="Running workloads may continue until then")

    # A class with paused scheduling admits nothing new: its flavor carries the taint gpu-portal/held.
    held_since = models.DateTimeField(null=True, blank=True, editable=False)
    held_until = models.DateTimeField(null=True, blank=True, editable=False)
    held_reason = models.CharField(max_length=200, blank=True, default="", editable=False)

    class Meta:
        verbose_name = "GPU class"
        verbose_name_plural = "GPU classes"
        ordering = ["slug"]
        constraints = [
            models.UniqueConstraint("cluster", "slug", name="gpu_class_slug_once"),
            models.CheckConstraint(condition=~Q(sharing="mps") | Q(partition="none"), name="gpu_class_no_mps_on_mig"),
            models.CheckConstraint(
                condition=Q(sharing="none") | Q(units_per_workload=1), name="gpu_class_one_share_each"
            ),
            models.CheckConstraint(
                condition=Q(sharing="none", replicas=1) | (~Q(sharing="none") & Q(replicas__gte=2)),
                name="gpu_class_replicas",
            ),
            models.CheckConstraint(
                condition=Q(interface="device-plugin", resource__contains="/", device_class="")
                | (Q(interface="dra", resource__contains="/") & ~Q(device_class="") & ~Q(device_selector=""))
                | Q(interface="none", resource="", device_class="")
                | Q(interface="storage", resource="", device_class="", partition="none", sharing="none"),
                name="gpu_class_interface",
            ),
            models.CheckConstraint(
                condition=~Q(interface="storage") | Q(borrowing_limit=0, starter=False), name="gpu_class_storage"
            ),
            models.UniqueConstraint(
                "cluster",
                condition=Q(interface="storage") & ~Q(life_cycle="retired"),
                name="gpu_class_one_storage",
            ),
            models.CheckConstraint(
                condition=Q(price_per_unit_hour__gte=0, weight__gte=0), name="gpu_class_not_negative"
            ),
            models.CheckConstraint(
                condition=Q(units_per_workload__gte=1, cpu_per_unit__gte=1, memory_gib_per_unit__gte=1),
                name="gpu_class_sizes",
            ),
            models.CheckConstraint(
                condition=Q(run_hours_limit=None) | Q(run_hours_limit__gte=1, run_hours_limit__lte=RUN_HOURS_MOST),
                name="gpu_class_run_hours",
            ),
            models.CheckConstraint(
                condition=Q(idle_stop_minutes=None)
                | Q(idle_stop_minutes__gte=IDLE_MINUTES_LEAST, idle_stop_minutes__lte=IDLE_MINUTES_MOST),
                name="gpu_class_idle_stop",
            ),
            models.CheckConstraint(
                condition=Q(idle_minutes__gte=IDLE_MINUTES_LEAST, idle_minutes__lte=IDLE_MINUTES_MOST),
                name="gpu_class_idle_minutes",
            ),
            models.CheckConstraint(condition=Q(log_retention_days__lte=LOG_DAYS_MOST), name="gpu_class_log_retention"),
            models.CheckConstraint(condition=Q(damping_minutes__lte=DAMPING_MINUTES_MOST), name="gpu_class_damping"),
            models.CheckConstraint(condition=Q(max_units=None) | Q(max_units__gte=1), name="gpu_class_max_units"),
            models.CheckConstraint(
                condition=Q(node_minutes__gte=1, node_minutes__lte=NODE_MINUTES_MOST), name="gpu_class_node_minutes"
            ),
            models.CheckConstraint(
                condition=Q(terms_version=0, terms="") | (Q(terms_version__gte=1) & ~Q(terms="")),
                name="gpu_class_terms",
            ),
            models.CheckConstraint(
                condition=Q(held_since=None, held_until=None, held_reason="")
                | (Q(held_since__isnull=False) & ~Q(held_reason="")),
                name="gpu_class_held",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def is_autoscaled(self) -> bool:
        """Nodes are added on demand, up to `max_units`."""
        return self.max_units is not None

    @property
    def is_storage(self) -> bool:
        return self.interface == self.Interface.STORAGE


constraint_sentence(
    "gpu_class_slug_once", "slug_taken", "A class of this name already exists in this cluster.", field="slug"
)
constraint_sentence(
    "gpu_class_no_mps_on_mig",
    "mps_on_mig",
    "The device plugin does not support MPS on a MIG slice; choose time-slicing or no sharing.",
    field="sharing",
)
constraint_sentence(
    "gpu_class_one_share_each",
    "one_share_each",
    "A second share of the same GPU adds nothing: enter 1 unit per workload for a shared class.",
    field="units_per_workload",
)
constraint_sentence(
    "gpu_class_replicas",
    "replicas",
    "Enter 2 or more replicas for a shared class, and 1 for an exclusive class.",
    field="replicas",
)
constraint_sentence(
    "gpu_class_interface",
    "interface",
    "A class with GPUs needs a resource name with a slash; a DRA class also needs a device class and a CEL selector.",
    field="interface",
)
constraint_sentence(
    "gpu_class_storage",
    "storage",
    "Storage cannot be borrowed or used as a trial: set the borrowing limit to 0 and starter to off.",
    field="interface",
)
constraint_sentence(
    "gpu_class_one_storage",
    "one_storage",
    "This cluster already has a storage class; edit it, or retire it first.",
    field="interface",
)
constraint_sentence(
    "gpu_class_not_negative", "negative", "Enter a price and a weight of 0 or more.", field="price_per_unit_hour"
)
constraint_sentence(
    "gpu_class_sizes",
    "sizes",
    "Enter at least 1 unit per workload, and at least 1 core and 1 GiB of memory per unit.",
    field="units_per_workload",
)
constraint_sentence(
    "gpu_class_run_hours",
    "run_hours",
    f"Enter a time limit of 1 to {RUN_HOURS_MOST} hours, or leave it empty for no time limit.",
    field="run_hours_limit",
)
constraint_sentence(
    "gpu_class_idle_stop",
    "idle_stop",
    f"Enter {IDLE_MINUTES_LEAST} to {IDLE_MINUTES_MOST} minutes, or leave it empty to never stop idle notebooks.",
    field="idle_stop_minutes",
)
constraint_sentence(
    "gpu_class_idle_minutes", "idle_minutes", f"Enter {IDLE_MINUTES_LEAST} to {IDLE_MINUTES_MOST} minutes.",
    field="idle_minutes",
)  # fmt: skip
constraint_sentence(
    "gpu_class_log_retention",
    "log_retention",
    f"Enter 0 to {LOG_DAYS_MOST} days; 0 means that logs are not kept.",
    field="log_retention_days",
)
constraint_sentence(
    "gpu_class_damping",
    "damping",
    f"Enter 0 to {DAMPING_MINUTES_MOST} minutes; 0 means that quota falls at once.",
    field="damping_minutes",
)
constraint_sentence(
    "gpu_class_max_units",
    "max_units",
    "Enter at least 1 unit, or leave it empty: then no nodes are added.",
    field="max_units",
)
constraint_sentence(
    "gpu_class_node_minutes", "node_minutes", f"Enter 1 to {NODE_MINUTES_MOST} minutes.", field="node_minutes"
)
constraint_sentence(
    "gpu_class_terms",
    "terms",
    "Terms need a text and a version of 1 or more; version 0 means no terms.",
    field="terms_version",
)
constraint_sentence(
    "gpu_class_held", "held", "A pause of scheduling needs a start time and a reason.", field="held_reason"
)


class DismissedProposal(models.Model):
    """Capacity that staff decided not to offer; discovery still finds it and no longer proposes it."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="+", db_index=False)
    slug = models.SlugField(max_length=40)
    reason = models.CharField(max_length=200)
    at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        constraints = [models.UniqueConstraint("cluster", "slug", name="dismissed_proposal_once")]

    def __str__(self) -> str:
        return self.slug


class Image(models.Model):
    """A container image that users choose by name; the reference is what the pod gets.

    `vendor` "": runs on any GPU, or without a GPU. `min_cuda`: the minimum CUDA version of the driver, or "".
    """

    name = models.CharField(max_length=60, unique=True)
    version = models.CharField(max_length=40, blank=True, default="")
    reference = models.CharField(max_length=300)
    digest = models.CharField(
        max_length=71, blank=True, default="", help_text="sha256:…; the pod uses exactly this digest"
    )
    contents = models.CharField(max_length=200, blank=True, default="")
    vendor = models.CharField(max_length=20, blank=True, default="")
    min_cuda = models.CharField(
        max_length=10, blank=True, default="", help_text="Minimum CUDA version, for example 12.4"
    )
    deprecated_since = models.DateField(null=True, blank=True)
    successor = models.ForeignKey("self", on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    kind = models.CharField(max_length=10, choices=[("notebook", "notebook"), ("job", "job")], default="notebook")
    position = models.PositiveIntegerField(default=100)

    class Meta:
        ordering = ["position", "name"]

    def __str__(self) -> str:
        return self.name


class Pool(Due):
    """The cluster-wide half of the catalog: a flavor per class, and the Cohort with units not allocated to teams."""

    cluster = models.OneToOneField(Cluster, on_delete=models.PROTECT, related_name="pool")
    applied_as_of = models.DateTimeField(null=True, blank=True)
    changed_at = models.DateTimeField(db_default=Now())

    queue = BACKGROUND

    def __str__(self) -> str:
        return f"pool of {self.cluster}"
