"""Classes and images as JSON. Class names are component names of the API's contract."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from catalog.classes import queries as class_queries
from catalog.contract.types import NO, PART, YES
from catalog.models import GpuClass

IMAGE_KINDS = ("notebook", "job")


class DelayedFallSerializer(serializers.Serializer[Any]):
    """A node that reports fewer units than the quota counts."""

    node = serializers.CharField()
    reported = serializers.IntegerField(help_text="Units that the node offers now.")
    counted = serializers.IntegerField(help_text="Units in the quota that can be borrowed.")
    since = serializers.DateTimeField()
    until = serializers.DateTimeField(help_text="When the quota is reduced, unless the node reports more before.")
    message = serializers.CharField(help_text="The sentence shown on pages.")


class DomainSerializer(serializers.Serializer[Any]):
    """For example one rack."""

    level = serializers.CharField(help_text="Node label.")
    values = serializers.ListField(
        child=serializers.CharField(), help_text="Its value of the label, after those of the levels above."
    )
    nodes = serializers.IntegerField()
    units = serializers.IntegerField(help_text="What its nodes offer.")
    used = serializers.IntegerField(help_text="Units of unfinished pods.")
    free = serializers.IntegerField(help_text="On nodes that accept new pods.")
    workers = serializers.IntegerField(
        help_text="How many workers with 1 unit each, and the CPU and memory of the class, fit there now."
    )


class ClassTopologySerializer(serializers.Serializer[Any]):
    name = serializers.CharField(source="topology.name")
    levels = serializers.ListField(
        source="topology.levels",
        child=serializers.CharField(),
        allow_null=True,
        help_text="Node labels, widest first. null: not known. Empty: the cluster has no such Topology.",
    )
    nodes = serializers.IntegerField(
        source="topology.nodes", allow_null=True, help_text="Nodes with the labels of the class. null: not known."
    )
    without_labels = serializers.IntegerField(
        source="topology.without_labels",
        allow_null=True,
        help_text="Nodes without the label of a level, which Kueue ignores. null: not known.",
    )
    domains = DomainSerializer(
        source="above_hosts",
        many=True,
        allow_null=True,
        help_text="The domains of each level above the host, each followed by those in it. null: not known.",
    )


class ClassCapacitySerializer(serializers.Serializer[Any]):
    allocatable = serializers.IntegerField(allow_null=True, help_text="Units on ready nodes. null: not known.")
    used = serializers.IntegerField(allow_null=True, help_text="Units of unfinished pods on nodes.")
    free = serializers.IntegerField(allow_null=True, help_text="On ready nodes that accept new pods.")
    most_on_one_node = serializers.IntegerField(allow_null=True, help_text="The most units that one pod could get now.")
    largest_node = serializers.IntegerField(allow_null=True, help_text="The most units that one pod could get at all.")
    unhealthy = serializers.IntegerField(
        allow_null=True, help_text="Of ready nodes: in capacity and not in allocatable, or on GPUs with faults."
    )
    cordoned = serializers.IntegerField(allow_null=True, help_text="Units on nodes that accept no new pods.")
    as_of = serializers.DateTimeField(allow_null=True)
    is_current = serializers.BooleanField(help_text="Whether `as_of` is recent.")


class PromiseSerializer(serializers.Serializer[Any]):
    topic = serializers.CharField()
    level = serializers.ChoiceField(
        choices=[YES, PART, NO], help_text="yes: guaranteed; part: within limits; no: not guaranteed."
    )
    lead = serializers.CharField()
    text = serializers.CharField(help_text="Continues `lead`.")
    reason = serializers.CharField()


class ContractSerializer(serializers.Serializer[Any]):
    promises = PromiseSerializer(many=True)
    neighbours = serializers.CharField(help_text="Other users of the same GPU.")
    suits = serializers.ListField(child=serializers.CharField(), help_text="Recommended for.")
    avoid = serializers.ListField(child=serializers.CharField(), help_text="Not recommended for.")
    expected = serializers.ListField(child=serializers.CharField(), help_text="Known behaviour.")
    incident = serializers.ListField(child=serializers.CharField(), help_text="Report to support.")
    tier = serializers.ChoiceField(choices=["", "pilot"], allow_blank=True)


class HoldSerializer(serializers.Serializer[Any]):
    since = serializers.DateTimeField()
    until = serializers.DateTimeField(allow_null=True, help_text="Expected end. null: not set.")
    reason = serializers.CharField()
    message = serializers.CharField(help_text="The sentence shown on pages.")


class TermsSerializer(serializers.Serializer[Any]):
    version = serializers.IntegerField()
    text = serializers.CharField()


class ClassPriceSerializer(serializers.Serializer[Any]):
    price_per_unit_hour = serializers.CharField(help_text="A decimal number.")
    since = serializers.DateTimeField(help_text="It applies from then on, until the next one.")
    by = serializers.CharField(
        source="by.name",
        default="",
        allow_blank=True,
        help_text="Who set it. Blank: the portal, for example when it was upgraded to a release that keeps prices.",
    )


class ClassSerializer(serializers.Serializer[Any]):
    slug = serializers.CharField(source="gpu_class.slug")
    name = serializers.CharField(source="gpu_class.name")
    summary = serializers.CharField(source="gpu_class.summary", allow_blank=True)
    unit = serializers.CharField(help_text="Name of one unit: GPU, slice, share, core or GiB.")
    vendor = serializers.CharField(source="gpu_class.vendor", allow_blank=True)
    product = serializers.CharField(source="gpu_class.product", allow_blank=True)
    partition = serializers.CharField(source="gpu_class.partition")
    sharing = serializers.CharField(source="gpu_class.sharing")
    replicas = serializers.IntegerField(source="gpu_class.replicas")
    interface = serializers.CharField(source="gpu_class.interface")
    resource = serializers.CharField(source="gpu_class.resource", allow_blank=True)
    interconnect = serializers.CharField(source="gpu_class.interconnect")
    interconnect_note = serializers.CharField(
        source="gpu_class.interconnect_note", allow_blank=True, help_text="Source of the information."
    )
    interconnect_on = serializers.DateField(source="gpu_class.interconnect_on", allow_null=True)
    memory_mib = serializers.IntegerField(source="gpu_class.memory_mib", allow_null=True)
    units_per_workload = serializers.IntegerField(source="gpu_class.units_per_workload")
    cpu_per_unit = serializers.IntegerField(source="gpu_class.cpu_per_unit")
    memory_gib_per_unit = serializers.IntegerField(source="gpu_class.memory_gib_per_unit")
    price_per_unit_hour = serializers.CharField(source="gpu_class.price_per_unit_hour", help_text="A decimal number.")
    weight = serializers.CharField(source="gpu_class.weight", help_text="GPU equivalents per unit, a decimal number.")
    borrowing_limit = serializers.IntegerField(
        source="gpu_class.borrowing_limit", help_text="Units that one team may borrow."
    )
    run_hours_limit = serializers.IntegerField(
        source="gpu_class.run_hours_limit",
        allow_null=True,
        help_text="Time limit from a run's start. null: no time limit.",
    )
    production_limit = serializers.IntegerField(
        source="gpu_class.production_limit",
        allow_null=True,
        help_text="Running and queued production units per team. null: the team's quota.",
    )
    idle_stop_minutes = serializers.IntegerField(
        source="gpu_class.idle_stop_minutes",
        allow_null=True,
        help_text="Minutes without activity. null: notebooks are not stopped.",
    )
    idle_action = serializers.ChoiceField(
        source="gpu_class.idle_action",
        choices=[str(one) for one in GpuClass.IdleAction.values],
        help_text="If the GPUs of a run are idle: nothing, notify its users, or warn them and stop it.",
    )
    idle_minutes = serializers.IntegerField(
        source="gpu_class.idle_minutes", help_text="Minutes without GPU activity after which a run is idle."
    )
    log_retention_days = serializers.IntegerField(
        source="gpu_class.log_retention_days", help_text="Days for which the log of an ended run is kept. 0: not kept."
    )
    kinds = serializers.ChoiceField(
        source="gpu_class.kinds", choices=[str(kind) for kind in GpuClass.Kinds.values], help_text="Allowed workloads."
    )
    eligibility = serializers.CharField(source="gpu_class.eligibility", allow_blank=True, help_text="Who may use it.")
    visibility = serializers.ChoiceField(
        source="gpu_class.visibility", choices=[str(one) for one in GpuClass.Visibility.values]
    )
    terms = TermsSerializer(allow_null=True, help_text="Must be accepted before the first launch. null: no terms.")
    life_cycle = serializers.ChoiceField(
        source="gpu_class.life_cycle", choices=[str(value) for value in class_queries.OPEN_STATES]
    )
    successor = serializers.CharField(allow_blank=True, help_text="Slug of the successor class, if there is one.")
    retirement = serializers.CharField(allow_blank=True, help_text="Notice of a retiring class to teams with quota.")
    migration = serializers.CharField(
        allow_blank=True, help_text="What users of a retiring class should do; empty for other classes and storage."
    )
    runs_until = serializers.DateTimeField(
        source="gpu_class.runs_until",
        allow_null=True,
        help_text="Running workloads may continue until then; null: no end is set.",
    )
    held = HoldSerializer(
        allow_null=True, help_text="Pause of scheduling: new workloads stay queued. null: not paused."
    )
    contract = ContractSerializer(allow_null=True, help_text="null: storage, which runs no workloads.")
    damping_minutes = serializers.IntegerField(
        source="gpu_class.damping_minutes",
        help_text="Minutes for which a node has to report fewer units before lent quota falls. 0: at once.",
    )
    max_units = serializers.IntegerField(
        source="gpu_class.max_units",
        allow_null=True,
        help_text="Units with all nodes that are added on demand. null: no nodes are added.",
    )
    node_minutes = serializers.IntegerField(
        source="gpu_class.node_minutes", help_text="Usual minutes until an added node is ready."
    )
    topology = ClassTopologySerializer(
        allow_null=True, help_text="Topology with more levels than the host. null: hosts only, or none."
    )
    capacity = ClassCapacitySerializer()
    delayed_falls = DelayedFallSerializer(
        many=True, help_text="Nodes whose missing units are still in the quota. `capacity` shows what nodes report."
    )


class ClassDetailSerializer(ClassSerializer):
    measured = serializers.ListField(
        child=serializers.CharField(),
        allow_null=True,
        help_text="The sentences shown on pages: what was measured between the GPUs of its nodes, and on how many. "
        "null: the nodes are unknown.",
    )


class ImageSerializer(serializers.Serializer[Any]):
    name = serializers.CharField(source="image.name", help_text="Name used at launch.")
    kind = serializers.ChoiceField(source="image.kind", choices=IMAGE_KINDS)
    version = serializers.CharField(source="image.version", allow_blank=True)
    contents = serializers.CharField(source="image.contents", allow_blank=True)
    reference = serializers.CharField(source="image.reference")
    digest = serializers.CharField(
        source="image.digest", allow_blank=True, help_text="The pod uses exactly this digest."
    )
    vendor = serializers.CharField(source="image.vendor", allow_blank=True, help_text="Empty: any GPU, or no GPU.")
    min_cuda = serializers.CharField(
        source="image.min_cuda", allow_blank=True, help_text="Minimum CUDA version of the driver."
    )
    deprecated_since = serializers.DateField(source="image.deprecated_since", allow_null=True)
    successor = serializers.CharField(
        source="image.successor.name", default="", allow_blank=True, help_text="Name of the successor image."
    )
    deprecation = serializers.CharField(allow_blank=True, help_text="The sentence shown on pages.")
    fits = serializers.BooleanField(
        allow_null=True, help_text="For the class in `?gpu_class=`; null: no class was given."
    )
    reason = serializers.CharField(allow_blank=True, help_text="Why it does not fit.")
    caution = serializers.CharField(allow_blank=True, help_text="A warning although it may fit.")
