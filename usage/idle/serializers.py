"""Idle runs as JSON, and the bodies of the calls. Class names are component names of the API's contract."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from accounts.rest.strict.serializers import StrictSerializer
from accounts.rest.validators import documented_length, documented_range
from workloads.lifetime.idle.policy import KEEP_HOURS_MOST, REASON_LIMIT


class IdleHolderSerializer(serializers.Serializer[Any]):
    team = serializers.CharField(source="team.slug", help_text="Slug of a team.")
    team_name = serializers.CharField(source="team.name")
    workload = serializers.CharField(source="workload.name")
    kind = serializers.CharField(source="workload.kind")
    run = serializers.IntegerField(source="row.run.number", help_text="Number of the run.")
    person = serializers.CharField(source="person.name", help_text="Who requested the run.")
    gpu_class = serializers.CharField(source="row.gpu_class.slug", help_text="Slug of a class.")
    units = serializers.IntegerField(source="row.units", help_text="Of all workers.")
    idle_since = serializers.DateTimeField(
        source="row.idle_since", help_text="End of the last minute with GPU activity, or start of the allocation."
    )
    judged_at = serializers.DateTimeField(source="row.judged_at", help_text="The figures are of this time.")
    minutes = serializers.IntegerField(source="row.minutes", help_text="Minutes of the rule of the class.")
    seen_minutes = serializers.IntegerField(
        source="row.seen_minutes", help_text="Of the last `minutes`, how many were measured; each without activity."
    )
    activity_percent = serializers.FloatField(
        source="row.activity_percent", allow_null=True, help_text="Mean GPU activity. null: unknown."
    )
    memory_mib = serializers.FloatField(
        source="row.memory_mib", allow_null=True, help_text="GPU memory held, of all devices. null: unknown."
    )
    cost_per_hour = serializers.CharField(help_text="A decimal number, at the price when the run was launched.")
    cost_since = serializers.CharField(help_text="Since `idle_since`, a decimal number.")
    stops_at = serializers.DateTimeField(
        source="row.stops_at", allow_null=True, help_text="null: no stop is announced."
    )
    kept_until = serializers.DateTimeField(source="row.kept_until", allow_null=True, help_text="null: it was not kept.")
    kept_reason = serializers.CharField(source="row.kept_reason", allow_blank=True)
    kept_by = serializers.CharField(
        source="row.kept_by.name", default="", allow_blank=True, help_text="Name of a person; blank: it was not kept."
    )


class KeepIdleSerializer(StrictSerializer):
    hours = serializers.IntegerField(validators=documented_range(1, KEEP_HOURS_MOST), help_text="Hours from now.")
    reason = serializers.CharField(
        allow_blank=True, validators=documented_length(REASON_LIMIT), help_text="Shown to the team and to operators."
    )


class StopIdleSerializer(StrictSerializer):
    reason = serializers.CharField(
        allow_blank=True, validators=documented_length(REASON_LIMIT), help_text="Sent to the users of the run."
    )
