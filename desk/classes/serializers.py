"""Classes and images as JSON. Class names are component names of the API's contract."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from catalog.classes import queries as class_queries
from catalog.contract.types import NO, PART, YES
from catalog.models import GpuClass

IMAGE_KINDS = ("notebook", "job")


class ClassCapacitySerializer(serializers.Serializer[Any]):
    allocatable = serializers.IntegerField(allow_null=True, help_text="Units on ready nodes. null: not known.")
    used = serializers.IntegerField(allow_null=True, help_text="Units of pods on nodes that are not finished.")
    free = serializers.IntegerField(allow_null=True, help_text="On ready nodes that take new pods.")
    most_on_one_node = serializers.IntegerField(allow_null=True, help_text="The most that one pod could have now.")
    largest_node = serializers.IntegerField(allow_null=True, help_text="The most that one pod could ever have.")
    unhealthy = serializers.IntegerField(allow_null=True, help_text="Units that nodes have and do not offer.")
    cordoned = serializers.IntegerField(allow_null=True, help_text="Units on nodes that take no new pods.")
    as_of = serializers.DateTimeField(allow_null=True)
    is_current = serializers.BooleanField(help_text="Whether `as_of` is as recent as it should be.")


class PromiseSerializer(serializers.Serializer[Any]):
    topic = serializers.CharField()
    level = serializers.ChoiceField(choices=[YES, PART, NO], help_text="yes: yours; part: within limits; no.")
    lead = serializers.CharField()
    text = serializers.CharField(help_text="Goes on where `lead` ends.")
    reason = serializers.CharField()


class ContractSerializer(serializers.Serializer[Any]):
    promises = PromiseSerializer(many=True)
    neighbours = serializers.CharField(help_text="Who else is on the card.")
    suits = serializers.ListField(child=serializers.CharField(), help_text="Whom it suits.")
    avoid = serializers.ListField(child=serializers.CharField(), help_text="Who should not take it.")
    expected = serializers.ListField(child=serializers.CharField(), help_text="What support treats as expected.")
    incident = serializers.ListField(child=serializers.CharField(), help_text="What support treats as an incident.")
    tier = serializers.ChoiceField(choices=["", "pilot"], allow_blank=True)


class HoldSerializer(serializers.Serializer[Any]):
    since = serializers.DateTimeField()
    until = serializers.DateTimeField(allow_null=True, help_text="Expected end. null: nobody has said.")
    reason = serializers.CharField()
    message = serializers.CharField(help_text="The sentence that pages show.")


class TermsSerializer(serializers.Serializer[Any]):
    version = serializers.IntegerField()
    text = serializers.CharField()


class ClassSerializer(serializers.Serializer[Any]):
    slug = serializers.CharField(source="gpu_class.slug")
    name = serializers.CharField(source="gpu_class.name")
    summary = serializers.CharField(source="gpu_class.summary", allow_blank=True)
    unit = serializers.CharField(help_text="What one unit is: card, slice, share, core or GiB.")
    vendor = serializers.CharField(source="gpu_class.vendor", allow_blank=True)
    product = serializers.CharField(source="gpu_class.product", allow_blank=True)
    partition = serializers.CharField(source="gpu_class.partition")
    sharing = serializers.CharField(source="gpu_class.sharing")
    replicas = serializers.IntegerField(source="gpu_class.replicas")
    interface = serializers.CharField(source="gpu_class.interface")
    resource = serializers.CharField(source="gpu_class.resource", allow_blank=True)
    interconnect = serializers.CharField(source="gpu_class.interconnect")
    interconnect_note = serializers.CharField(
        source="gpu_class.interconnect_note", allow_blank=True, help_text="Where that is known from."
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
        source="gpu_class.run_hours_limit", allow_null=True, help_text="From a run's start. null: runs need no end."
    )
    production_limit = serializers.IntegerField(
        source="gpu_class.production_limit",
        allow_null=True,
        help_text="Units that one team may have at work or waiting as production. null: what it was granted.",
    )
    idle_stop_minutes = serializers.IntegerField(
        source="gpu_class.idle_stop_minutes", allow_null=True, help_text="Without use. null: notebooks are not stopped."
    )
    kinds = serializers.ChoiceField(
        source="gpu_class.kinds", choices=[str(kind) for kind in GpuClass.Kinds.values], help_text="What may run on it."
    )
    eligibility = serializers.CharField(source="gpu_class.eligibility", allow_blank=True, help_text="Whom it is for.")
    visibility = serializers.ChoiceField(
        source="gpu_class.visibility", choices=[str(one) for one in GpuClass.Visibility.values]
    )
    terms = TermsSerializer(allow_null=True, help_text="To be accepted before the first launch. null: none.")
    life_cycle = serializers.ChoiceField(
        source="gpu_class.life_cycle", choices=[str(value) for value in class_queries.OPEN_STATES]
    )
    successor = serializers.CharField(allow_blank=True, help_text="Slug of the class to go to, if there is one.")
    retirement = serializers.CharField(allow_blank=True, help_text="What a retiring class says to those who hold it.")
    runs_until = serializers.DateTimeField(
        source="gpu_class.runs_until", allow_null=True, help_text="Until when what runs may go on; null: no end is set."
    )
    held = HoldSerializer(allow_null=True, help_text="null: not held. A held class starts nothing new.")
    contract = ContractSerializer(allow_null=True, help_text="null: storage, on which nothing runs.")
    capacity = ClassCapacitySerializer()


class ImageSerializer(serializers.Serializer[Any]):
    name = serializers.CharField(source="image.name", help_text="What a launch says.")
    kind = serializers.ChoiceField(source="image.kind", choices=IMAGE_KINDS)
    version = serializers.CharField(source="image.version", allow_blank=True)
    contents = serializers.CharField(source="image.contents", allow_blank=True)
    reference = serializers.CharField(source="image.reference")
    digest = serializers.CharField(source="image.digest", allow_blank=True, help_text="The pod gets exactly this.")
    vendor = serializers.CharField(source="image.vendor", allow_blank=True, help_text="Empty: any card, or none.")
    min_cuda = serializers.CharField(source="image.min_cuda", allow_blank=True, help_text="Least CUDA of the driver.")
    deprecated_since = serializers.DateField(source="image.deprecated_since", allow_null=True)
    successor = serializers.CharField(
        source="image.successor.name", default="", allow_blank=True, help_text="Name of the image to go to."
    )
    deprecation = serializers.CharField(allow_blank=True, help_text="The sentence that pages show.")
    fits = serializers.BooleanField(
        allow_null=True, help_text="Of the class in `?gpu_class=`; null: none was asked for."
    )
    reason = serializers.CharField(allow_blank=True, help_text="Why it does not fit.")
    caution = serializers.CharField(allow_blank=True, help_text="What has to be said although it may fit.")
