"""The list of teams as JSON. Class names are component names of the API's contract."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from desk.teams.types import TEAM_STATES


class ClassUseSerializer(serializers.Serializer[Any]):
    gpu_class = serializers.CharField(source="slug")
    unit = serializers.CharField()
    quota = serializers.IntegerField(help_text="Units in force now, temporary increases included.")
    used = serializers.IntegerField(allow_null=True, help_text="Units in use; null if unknown, and for storage.")
    is_shared = serializers.BooleanField()


class GpuSumSerializer(serializers.Serializer[Any]):
    quota = serializers.CharField(help_text="GPU equivalents, a decimal number.")
    used = serializers.CharField(allow_null=True)


class TeamGpusSerializer(serializers.Serializer[Any]):
    exclusive = GpuSumSerializer(help_text="Whole GPUs and MIG slices.")
    shared = GpuSumSerializer(help_text="Shares. Never added to the exclusive ones.")


class TeamOwnerSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    email = serializers.CharField()


class TeamOverviewSerializer(serializers.Serializer[Any]):
    team = serializers.CharField(source="slug")
    name = serializers.CharField()
    state = serializers.ChoiceField(choices=TEAM_STATES)
    problem = serializers.CharField(allow_blank=True, help_text="Why a stuck team is stuck; empty otherwise.")
    out_of_sync = serializers.IntegerField(
        help_text="Objects of its namespace and queue that are rejected, in conflict or drifted."
    )
    owners = TeamOwnerSerializer(many=True)
    created_at = serializers.DateTimeField()
    is_busy = serializers.BooleanField(help_text="Whether it has queued or running workloads.")
    last_activity_at = serializers.DateTimeField(
        allow_null=True, help_text="The last run or action of a person in the team; null if there was none."
    )
    next_expiry_at = serializers.DateTimeField(allow_null=True, help_text="When the next grant in force ends.")
    queued_runs = serializers.IntegerField()
    quota = ClassUseSerializer(many=True, source="uses")
    gpus = TeamGpusSerializer()


class TeamOverviewListSerializer(serializers.Serializer[Any]):
    items = TeamOverviewSerializer(many=True)
    next = serializers.URLField(allow_null=True)
    as_of = serializers.DateTimeField(allow_null=True, help_text="Of the use.")
    is_current = serializers.BooleanField()
    problem = serializers.CharField(allow_blank=True)
