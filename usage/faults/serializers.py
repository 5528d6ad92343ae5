"""Faults of GPUs as JSON. Class names are component names of the API's contract."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from usage.faults.queries import FaultState
from usage.faults.types import FaultKind


class FaultRunSerializer(serializers.Serializer[Any]):
    team = serializers.CharField(source="workload.tenant.slug", help_text="Slug of a team.")
    workload = serializers.CharField(source="workload.name")
    run = serializers.IntegerField(source="number", help_text="Number of the run.")


class GpuFaultSerializer(serializers.Serializer[Any]):
    id = serializers.IntegerField(source="row.pk")
    node = serializers.CharField(source="row.node", help_text="As the exporter names it.")
    gpu = serializers.CharField(source="row.device", help_text="UUID of the GPU.")
    mig_instance = serializers.CharField(
        source="row.instance", allow_blank=True, help_text="Blank: of the whole GPU, or not reported."
    )
    model = serializers.CharField(source="row.gpu_model", allow_blank=True)
    kind = serializers.ChoiceField(choices=[str(one) for one in FaultKind])
    code = serializers.IntegerField(allow_null=True, help_text="Of an XID; null for other kinds.")
    state = serializers.ChoiceField(
        choices=[str(one) for one in FaultState],
        help_text="unknown: it was open, and its GPU has had no metrics since. gone: had none for days.",
    )
    title = serializers.CharField()
    what = serializers.CharField(source="meaning.what", help_text="What happened.")
    loss = serializers.CharField(source="meaning.loss", help_text="Whether work is lost.")
    do = serializers.CharField(source="meaning.do", help_text="What the users of its runs should do.")
    operators = serializers.CharField(source="meaning.operators", help_text="What operators should do.")
    is_unhealthy = serializers.BooleanField(help_text="Whether a cordon is proposed; such a GPU counts as unhealthy.")
    first_seen = serializers.DateTimeField(source="row.first_seen")
    last_seen = serializers.DateTimeField(source="row.last_seen")
    cleared_at = serializers.DateTimeField(source="row.cleared_at", allow_null=True, help_text="null: it is not over.")
    runs = FaultRunSerializer(many=True, help_text="Runs that held the GPU then, of those that you may see.")
