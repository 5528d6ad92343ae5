"""Measurements of nodes as JSON. Class names are component names of the API's contract."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from accounts.rest.strict.serializers import StrictSerializer
from catalog.interconnect.actions import OUTPUT_MAX
from catalog.models import NodeMeasurement


class RecordMeasurementSerializer(StrictSerializer):
    output = serializers.CharField(
        max_length=OUTPUT_MAX,
        trim_whitespace=False,
        help_text="Of `nvidia-smi topo -m`, of `all_reduce_perf`, or a log with both.",
    )
    measured_on = serializers.DateField(required=False, allow_null=True, default=None, help_text="null: today.")


class NodeMeasurementSerializer(serializers.Serializer[Any]):
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


class RecordedMeasurementsSerializer(serializers.Serializer[Any]):
    items = NodeMeasurementSerializer(many=True)
