"""Nodes and their measurements as JSON. Class names are component names of the API's contract."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from accounts.rest.strict.serializers import StrictSerializer
from accounts.rest.validators import documented_length
from catalog.interconnect.actions import BECAUSE_MAX, OUTPUT_MAX
from catalog.models import NodeMeasurement


class NodeDevicesSerializer(serializers.Serializer[Any]):
    resource = serializers.CharField(help_text="A resource name; for devices of a DRA driver the driver.")
    capacity = serializers.IntegerField()
    allocatable = serializers.IntegerField()
    used = serializers.IntegerField(help_text="Units of unfinished pods, also of those outside the portal.")
    unhealthy = serializers.IntegerField()
    faulty = serializers.IntegerField(
        allow_null=True, help_text="Of these, on GPUs with open faults. null: they cannot be counted."
    )


class OperatedNodeSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    product = serializers.CharField(allow_blank=True)
    is_ready = serializers.BooleanField(source="ready")
    is_schedulable = serializers.BooleanField(source="schedulable")
    cordon = serializers.CharField(allow_blank=True, help_text="Who cordoned it and since when; empty if nobody did.")
    mig_config = serializers.CharField(source="layout", allow_blank=True, help_text="The MIG layout that is requested.")
    mig_config_state = serializers.CharField(source="layout_state", allow_blank=True)
    devices = NodeDevicesSerializer(many=True)
    faults = serializers.SerializerMethodField(help_text="Open faults of its GPUs.")

    def get_faults(self, line: Any) -> list[str]:
        return [f"{fault.row.device}: {fault.title}" for fault in line.faults]


class NodeListSerializer(serializers.Serializer[Any]):
    items = OperatedNodeSerializer(many=True)
    next = serializers.URLField(allow_null=True)
    faults = serializers.CharField(allow_blank=True, help_text="Whether faults of GPUs are read, and if not, why.")
    as_of = serializers.DateTimeField(allow_null=True)
    is_current = serializers.BooleanField()
    problem = serializers.CharField(allow_blank=True)


class RecordMeasurementSerializer(StrictSerializer):
    output = serializers.CharField(
        max_length=OUTPUT_MAX,
        trim_whitespace=False,
        help_text="Of `nvidia-smi topo -m`, of `all_reduce_perf`, or a log with both.",
    )
    measured_on = serializers.DateField(required=False, allow_null=True, default=None, help_text="null: today.")


class WithdrawMeasurementSerializer(StrictSerializer):
    because = serializers.CharField(
        validators=documented_length(BECAUSE_MAX), help_text="Reason; it stays on the page of the node."
    )


class NodeMeasurementSerializer(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    node = serializers.CharField()
    kind = serializers.ChoiceField(choices=NodeMeasurement.Kind.choices)
    measured_on = serializers.DateField()
    recorded_at = serializers.DateTimeField()
    by = serializers.CharField(source="by.name", help_text="Who recorded it.")
    gpus = serializers.IntegerField(help_text="That took part.")
    links = serializers.ListField(
        child=serializers.ListField(child=serializers.CharField()),
        allow_null=True,
        help_text="One row for each GPU, with its link to each: X to itself, NV18, PIX, PXB, PHB, NODE, SYS. null: of "
        "another kind.",
    )
    bus_gb_s = serializers.CharField(
        allow_null=True, help_text="Bus bandwidth of all_reduce, a decimal number in GB/s. null: of another kind."
    )
    message_bytes = serializers.IntegerField(
        allow_null=True, help_text="The largest message, for which `bus_gb_s` is. null: of another kind."
    )
    product = serializers.CharField(allow_blank=True, help_text="Of the node when it was recorded. Empty: unknown.")
    driver = serializers.CharField(allow_blank=True, help_text="Of the node when it was recorded. Empty: unknown.")
    withdrawn_at = serializers.DateTimeField(allow_null=True, help_text="null: it is not withdrawn.")
    withdrawn_because = serializers.CharField(allow_blank=True, help_text="Empty: it is not withdrawn.")


class RecordedMeasurementsSerializer(serializers.Serializer[Any]):
    items = NodeMeasurementSerializer(many=True)
