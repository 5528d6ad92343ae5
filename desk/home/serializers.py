"""A team's home as JSON. Class names are component names of the API's contract."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from desk.home import queries as home_queries
from workloads.status.estimates.serializers import EstimateSerializer


class LentSerializer(serializers.Serializer[Any]):
    """Units that other teams use: exact if both are equal. The lender of a borrowed unit is not recorded."""

    least = serializers.IntegerField()
    most = serializers.IntegerField()


class LiveHoldingSerializer(serializers.Serializer[Any]):
    """Units of one class. null: not known, never 0."""

    gpu_class = serializers.CharField(source="slug")
    name = serializers.CharField()
    unit = serializers.CharField()
    granted = serializers.IntegerField()
    used = serializers.IntegerField(allow_null=True, help_text="With `borrowed`, `outside` and `in_grace`.")
    borrowed = serializers.IntegerField(allow_null=True)
    outside = serializers.IntegerField(
        allow_null=True, help_text="Reserved in the queue for workloads that were not started in the portal."
    )
    in_grace = serializers.IntegerField(allow_null=True, help_text="Of expired grants, in their grace period.")
    lent = LentSerializer(allow_null=True)
    queued = serializers.IntegerField(allow_null=True)
    ends_at = serializers.DateTimeField(allow_null=True)
    grace_until = serializers.DateTimeField(allow_null=True)


class LiveWaitingSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    kind = serializers.CharField()
    size = serializers.CharField()
    who = serializers.CharField()
    status = serializers.CharField()
    requested_at = serializers.DateTimeField()
    position = serializers.CharField(allow_blank=True, help_text="In the team's queue; blank if there is none.")
    reason = serializers.CharField()
    estimate = EstimateSerializer(allow_null=True)


class LiveWaitingGroupSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    status = serializers.CharField()
    sentence = serializers.CharField(allow_blank=True)
    next_end = serializers.CharField(allow_blank=True, help_text="Workload of this class with the earliest known end.")
    next_end_at = serializers.DateTimeField(allow_null=True)
    rows = LiveWaitingSerializer(many=True)


class LiveRunningSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    kind = serializers.CharField()
    size = serializers.CharField()
    units = serializers.IntegerField()
    who = serializers.CharField()
    status = serializers.CharField()
    reason = serializers.CharField()
    since = serializers.DateTimeField(allow_null=True)
    ends_at = serializers.DateTimeField(allow_null=True)
    idle_since = serializers.DateTimeField(allow_null=True)
    idle_stops_at = serializers.DateTimeField(allow_null=True)
    can_be_interrupted = serializers.CharField(
        allow_blank=True, help_text="Whether it is preemptible; blank if unknown."
    )
    is_borrowed = serializers.BooleanField(help_text="It uses borrowed units, which may be reclaimed.")
    interrupted = serializers.CharField(allow_blank=True, help_text="How often it was preempted, and when last.")
    verb = serializers.ChoiceField(["open", "fix", "log", "progress"], help_text="The action that the page offers.")


class LiveRunningGroupSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    text = serializers.CharField(allow_blank=True)
    rows = LiveRunningSerializer(many=True)


class LiveNotOursSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    units = serializers.CharField(help_text="Number and resource name, as in the cluster.")
    node = serializers.CharField(allow_blank=True)
    since = serializers.DateTimeField()


class LiveConcernSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    text = serializers.CharField()
    since = serializers.DateTimeField(allow_null=True)


class LiveAttentionSerializer(serializers.Serializer[Any]):
    title = serializers.CharField()
    concerns = LiveConcernSerializer(many=True)
    more = serializers.IntegerField()


class LiveHoursSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    whole = serializers.FloatField(help_text="GPU-hours on whole GPUs.")
    parts = serializers.FloatField(help_text="GPU-hours on slices and shares.")
    cost = serializers.CharField(help_text="A decimal number, at the price when each run was launched.")


class LiveMonthSerializer(serializers.Serializer[Any]):
    since = serializers.DateTimeField()
    members = LiveHoursSerializer(many=True, help_text="Highest first; the last one may combine several members.")
    team = LiveHoursSerializer()


class LiveEndSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    units = serializers.IntegerField()
    at = serializers.DateTimeField()
    runs_until = serializers.DateTimeField(allow_null=True)


class LiveEventSerializer(serializers.Serializer[Any]):
    at = serializers.DateTimeField()
    who = serializers.CharField(allow_blank=True)
    sentence = serializers.CharField()
    name = serializers.CharField(allow_blank=True)


class LiveSerializer(serializers.Serializer[Any]):
    as_of = serializers.DateTimeField(allow_null=True)
    is_stale = serializers.BooleanField()
    summary = serializers.CharField()
    attention = LiveAttentionSerializer(allow_null=True)
    holdings = LiveHoldingSerializer(many=True)
    waiting = LiveWaitingGroupSerializer(many=True, source="waiting_groups")
    running = LiveRunningGroupSerializer(many=True, source="running_groups")
    not_ours = LiveNotOursSerializer(many=True, help_text="Pods that use devices and belong to no workload.")
    events = LiveEventSerializer(many=True)
    month = LiveMonthSerializer()
    ends = LiveEndSerializer(many=True)
    versions = serializers.SerializerMethodField(
        help_text="By kind: a resource version of the API server. The data is at least as new; null: not known yet."
    )

    @extend_schema_field({"type": "object", "additionalProperties": {"type": ["string", "null"]}})
    def get_versions(self, _state: home_queries.HomeState) -> dict[str, str | None]:
        found: dict[str, str | None] = self.context["versions"]
        return found
