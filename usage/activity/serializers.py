"""Activity as JSON. Class names are component names of the API's contract."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

PERCENT = "Percent, the mean of the run's devices over the measured minutes."


class ActivityHourSerializer(serializers.Serializer[Any]):
    hour = serializers.DateTimeField()
    minutes = serializers.IntegerField(help_text="How many minutes of the hour were measured.")
    busy_minutes = serializers.IntegerField(help_text="Minutes in which the activity of a device was at least 5 %.")
    activity = serializers.FloatField(help_text=PERCENT)
    activity_max = serializers.FloatField(help_text="Percent, of the busiest device in its busiest minute.")
    memory_mib = serializers.FloatField(allow_null=True, help_text="Used GPU memory, the sum of the devices; a mean.")
    power_w = serializers.FloatField(allow_null=True, help_text="The sum of the devices; a mean.")


class ActivityNowSerializer(serializers.Serializer[Any]):
    activity = serializers.FloatField(help_text="Percent, the mean of the run's devices.")
    memory_mib = serializers.FloatField(allow_null=True)
    power_w = serializers.FloatField(allow_null=True)


class SizeAdviceSerializer(serializers.Serializer[Any]):
    suggestion = serializers.CharField()
    why = serializers.CharField(help_text="What was measured in two weeks.")
    gpu_class = serializers.CharField(help_text="Slug of the suggested class.")
    units = serializers.IntegerField()
    needs_quota = serializers.BooleanField(help_text="The team may not use so many units of that class now.")


class RunActivitySerializer(serializers.Serializer[Any]):
    run_number = serializers.IntegerField()
    measure = serializers.CharField(
        allow_blank=True,
        help_text="utilisation; engine: activity of the graphics engine, as for MIG slices; shared: of the whole GPU, "
        "of all who share it; blank before the first measured minute.",
    )
    now = ActivityNowSerializer(allow_null=True, help_text="The last minute; null: it was not measured.")
    reason = serializers.CharField(allow_blank=True, help_text="Why the last minute was not measured.")
    read_until = serializers.DateTimeField(allow_null=True, help_text="The end of the last minute that was read.")
    is_partial = serializers.BooleanField(help_text="true: Prometheus answered with warnings, figures may be missing.")
    minutes = serializers.IntegerField(help_text="Measured minutes of these hours.")
    busy_minutes = serializers.IntegerField()
    mean = serializers.FloatField(allow_null=True, help_text=PERCENT)
    memory_total_mib = serializers.FloatField(allow_null=True, help_text="Of all devices of the run.")
    memory_share_max = serializers.FloatField(allow_null=True, help_text="Percent, of the fullest device.")
    size_advice = SizeAdviceSerializer(allow_null=True, help_text="A smaller or larger size; null: none is suggested.")
    hours = ActivityHourSerializer(
        many=True,
        help_text="Of the last week in which it ran, the oldest first; hours without a measured minute are missing.",
    )


class TeamActivityDaySerializer(serializers.Serializer[Any]):
    day = serializers.DateTimeField(help_text="Its first moment, in the time zone of the server.")
    gpu_class = serializers.CharField(help_text="Slug of a class.")
    class_name = serializers.CharField()
    held = serializers.FloatField(help_text="Unit-hours that the team held.")
    measured = serializers.FloatField(help_text="Those of them that were measured. GPUs that are shared are not.")
    busy = serializers.FloatField(help_text="Measured unit-hours × activity.")


class ClassActivityDaySerializer(serializers.Serializer[Any]):
    day = serializers.DateTimeField(help_text="Its first moment, in the time zone of the server.")
    provided = serializers.FloatField(allow_null=True, help_text="Unit-hours of ready nodes; null: not recorded.")
    recorded_hours = serializers.FloatField(help_text="Hours of the day in which the number of units was recorded.")
    held = serializers.FloatField(help_text="Unit-hours that teams held.")
    measured = serializers.FloatField(help_text="Those of them that were measured. GPUs that are shared are not.")
    busy = serializers.FloatField(help_text="Measured unit-hours × activity.")


class ClassActivitySerializer(serializers.Serializer[Any]):
    gpu_class = serializers.CharField(source="slug", help_text="Slug of a class.")
    class_name = serializers.CharField(source="name")
    reason = serializers.CharField(allow_blank=True, help_text="Why it is not measured, or not now; blank: it is.")
    read_until = serializers.DateTimeField(
        allow_null=True, help_text="The end of the last minute that was read; null: the class is never measured."
    )
    days = ClassActivityDaySerializer(many=True, help_text="Days without held or recorded units are missing.")
