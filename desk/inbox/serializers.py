"""The inbox and a team's usage as JSON. Class names are component names of the API's contract."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from tenants.models import QuotaLine
from tenants.requests.decisions.triage import TriageGroup
from tenants.requests.serializers import KINDS_HELP, STATES, RequestSerializer

GROUPS = [str(group) for group in TriageGroup]


class SmallerTotalSerializer(serializers.Serializer[Any]):
    units = serializers.IntegerField(help_text="The new total to request; 0 releases the quota.")
    until = serializers.DateField(help_text="The last day of the present total.")
    why = serializers.CharField(help_text="What was measured, with figures.")


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
    activity = serializers.FloatField(allow_null=True, help_text="Mean activity of the units it held, 0 to 1.")
    activity_seen_share = serializers.FloatField(
        allow_null=True, help_text="The measured part of what it held, 0 to 1; null: it held nothing."
    )
    smaller_total = SmallerTotalSerializer(
        allow_null=True, help_text="A smaller total that would have been enough; null: none is suggested."
    )


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


class ClassFactsSerializer(ClassUsageSerializer):
    """Units of one class that the request names, for its team and for all teams. null: not known, never 0."""

    promised = serializers.IntegerField(help_text="Allocated to teams.")
    limit = serializers.IntegerField(allow_null=True, help_text="Allocation limit.")
    allocatable = serializers.IntegerField(allow_null=True, help_text="In the cluster.")
    in_use = serializers.IntegerField(allow_null=True, help_text="By all teams, now.")
    free = serializers.IntegerField(allow_null=True, help_text="Now.")
    as_of = serializers.DateTimeField(allow_null=True, help_text="Of the figures of the cluster.")


class EarlierLineSerializer(serializers.Serializer[Any]):
    request = serializers.IntegerField(source="request_id", help_text="Number of the request.")
    gpu_class = serializers.CharField(source="slug", help_text="Slug of a class.")
    kind = serializers.ChoiceField(choices=QuotaLine.Kind.values, help_text=KINDS_HELP)
    asked_units = serializers.IntegerField(source="asked")
    decided_units = serializers.IntegerField(source="units", allow_null=True, help_text="null: not approved.")
    state = serializers.ChoiceField(choices=STATES)
    decided_at = serializers.DateTimeField(source="at", allow_null=True)
    decided_by = serializers.CharField(source="by", allow_blank=True)
    reason = serializers.CharField(allow_blank=True)


class PlannedObjectSerializer(serializers.Serializer[Any]):
    kind = serializers.CharField()
    namespace = serializers.CharField(allow_blank=True)
    name = serializers.CharField()
    change = serializers.CharField(help_text="create, change, delete or same.")
    result = serializers.CharField(help_text="accepted or refused by the dry run.")
    message = serializers.CharField(source="text", allow_blank=True)


class PlanSerializer(serializers.Serializer[Any]):
    made_at = serializers.DateTimeField(allow_null=True)
    error = serializers.CharField(allow_blank=True, help_text="Why there is none.")
    objects = PlannedObjectSerializer(many=True)


class FactsSerializer(UsageSerializer):
    classes = ClassFactsSerializer(many=True, help_text="The classes of the request.")
    group = serializers.ChoiceField(
        choices=GROUPS, allow_null=True, help_text="As in the inbox; null: no pending line that you decide."
    )
    reasons: Any = serializers.ListField(child=serializers.CharField(), help_text="Sentences that explain the group.")
    earlier = EarlierLineSerializer(many=True, help_text="The last ten decided lines of these classes, newest first.")
    plan = PlanSerializer(allow_null=True, help_text="What would change in the cluster, as a dry run.")
