"""The queue as JSON. Class names are component names of the API's contract."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers


class LevelNeedSerializer(serializers.Serializer[Any]):
    level = serializers.CharField(help_text="Node label.")
    workers = serializers.IntegerField(help_text="All of them have to be in one domain of the level.")
    units = serializers.IntegerField(help_text="Of each worker.")
    fit = serializers.IntegerField(
        allow_null=True, help_text="Workers that fit in the best domain now. null: not known."
    )


class WaitingSerializer(serializers.Serializer[Any]):
    team = serializers.CharField()
    workload = serializers.CharField()
    kind = serializers.CharField()
    run = serializers.IntegerField(help_text="The run's number.")
    gpu_class = serializers.CharField()
    units = serializers.IntegerField()
    priority = serializers.IntegerField(help_text="Priority in Kueue; a higher number starts first.")
    goes_as = serializers.CharField(help_text="Its priority by name.")
    moving_to = serializers.CharField(
        allow_blank=True, help_text="The priority that operators set and that Kueue does not have yet."
    )
    place = serializers.IntegerField(help_text="1 is the first of its team for the class.")
    waits_since = serializers.DateTimeField()
    phase = serializers.CharField()
    reason = serializers.CharField(help_text="A stable code: why it is queued.")
    sentence = serializers.CharField()
    is_suspended = serializers.BooleanField(help_text="Whether its team is suspended.")
    needs = LevelNeedSerializer(allow_null=True, help_text="null: it requires no topology level.")


class QueueLineSerializer(serializers.Serializer[Any]):
    slug = serializers.CharField()
    runs = serializers.IntegerField()
    units = serializers.IntegerField()
    oldest_at = serializers.DateTimeField(allow_null=True)
    hold = serializers.CharField(allow_blank=True, help_text="Why scheduling is paused; empty otherwise.")


class QueueSerializer(serializers.Serializer[Any]):
    items = WaitingSerializer(many=True)
    next = serializers.URLField(allow_null=True)
    classes = QueueLineSerializer(many=True, help_text="Queued runs of each class, independent of the filters.")
    as_of = serializers.DateTimeField(allow_null=True)
    is_current = serializers.BooleanField()
    problem = serializers.CharField(allow_blank=True)
