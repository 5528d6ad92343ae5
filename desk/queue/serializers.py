"""The queue as JSON. Class names are component names of the API's contract."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers


class WaitingSerializer(serializers.Serializer[Any]):
    tenant = serializers.CharField()
    workload = serializers.CharField()
    kind = serializers.CharField()
    run = serializers.IntegerField(help_text="The run's number.")
    gpu_class = serializers.CharField()
    units = serializers.IntegerField()
    priority = serializers.IntegerField(help_text="Kueue's; the higher goes first.")
    goes_as = serializers.CharField(help_text="Its priority by name.")
    moving_to = serializers.CharField(
        allow_blank=True, help_text="The priority that operators gave it and that Kueue does not have yet."
    )
    place = serializers.IntegerField(help_text="1 is the first of its team for the class.")
    waits_since = serializers.DateTimeField()
    phase = serializers.CharField()
    reason = serializers.CharField(help_text="A stable code: what blocks it.")
    sentence = serializers.CharField()
    is_suspended = serializers.BooleanField(help_text="Whether its team is.")


class QueueLineSerializer(serializers.Serializer[Any]):
    slug = serializers.CharField()
    runs = serializers.IntegerField()
    units = serializers.IntegerField()
    oldest_at = serializers.DateTimeField(allow_null=True)
    hold = serializers.CharField(allow_blank=True, help_text="What is said of its hold; empty while it is open.")


class QueueSerializer(serializers.Serializer[Any]):
    items = WaitingSerializer(many=True)
    next = serializers.URLField(allow_null=True)
    classes = QueueLineSerializer(many=True, help_text="All that waits for each class, whatever the filters say.")
    as_of = serializers.DateTimeField(allow_null=True)
    is_current = serializers.BooleanField()
    problem = serializers.CharField(allow_blank=True)
