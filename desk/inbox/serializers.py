"""The inbox and a team's usage as JSON. Class names are component names of the API's contract."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from tenants.requests.decisions.triage import TriageGroup
from tenants.requests.serializers import RequestSerializer

GROUPS = [str(group) for group in TriageGroup]


class ClassUsageSerializer(serializers.Serializer[Any]):
    """Units of one class. null: not known, never 0."""

    gpu_class = serializers.CharField(help_text="Slug of a class.")
    held = serializers.IntegerField(help_text="In force now.")
    used = serializers.IntegerField(allow_null=True, help_text="Now.")
    peak = serializers.IntegerField(allow_null=True)
    mean = serializers.FloatField(allow_null=True, help_text="Over the minutes in which usage was measured.")
    seen_share = serializers.FloatField(help_text="Part of the period in which usage was measured, 0 to 1.")
    runs = serializers.IntegerField(help_text="Requested in the period.")
    runs_waited = serializers.IntegerField(help_text="Of these, queued for over a minute.")
    median_wait_s = serializers.FloatField(allow_null=True, help_text="From request to admission, of admitted runs.")
    cards_per_unit = serializers.FloatField(allow_null=True, help_text="Physical GPUs; null: no GPU.")


class MemberUsageSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    gpu_hours = serializers.FloatField(help_text="GPU equivalents × hours from start to end, of all classes.")


class UsageSerializer(serializers.Serializer[Any]):
    since = serializers.DateTimeField()
    until = serializers.DateTimeField()
    classes = ClassUsageSerializer(many=True, help_text="Granted now or used in the period, by slug.")
    members = MemberUsageSerializer(many=True, help_text="Members who launched the workloads, highest first.")


class InboxSerializer(RequestSerializer):
    group = serializers.ChoiceField(
        choices=GROUPS,
        help_text="one_click: ready to approve. conflict: exceeds a limit or is refused. look: needs review.",
    )
    reasons: Any = serializers.ListField(child=serializers.CharField(), help_text="Sentences that explain the group.")
