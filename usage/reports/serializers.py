"""A report as JSON. Class names are component names of the API's contract."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

EXACT_HELP = "false: includes times that are not exact."


class UsageFiguresSerializer(serializers.Serializer[Any]):
    gpu_hours = serializers.CharField(help_text="GPU equivalents × hours, a decimal number.")
    cost = serializers.CharField(help_text="A decimal number, at the price when each run was launched.")
    is_exact = serializers.BooleanField(help_text=EXACT_HELP)
    measured_cost = serializers.CharField(
        help_text="The part of the cost from minutes in which the activity of the GPUs was measured."
    )
    idle_cost = serializers.CharField(help_text="Of the measured cost: cost × (1 - activity).")


class UsageLineSerializer(UsageFiguresSerializer):
    team = serializers.CharField(help_text="Slug of a team.")
    team_name = serializers.CharField()
    person = serializers.CharField(help_text="Who requested the runs, or 'Pods outside the portal'.")
    email = serializers.CharField(allow_blank=True, help_text="Blank for pods outside the portal.")
    gpu_class = serializers.CharField(help_text="Slug of a class.")
    class_name = serializers.CharField()
    priority = serializers.CharField(
        allow_blank=True, help_text="production, interactive or batch; blank for pods outside the portal."
    )
    unit_hours = serializers.CharField(help_text="Units × hours, a decimal number.")


class UsageOfTeamSerializer(UsageFiguresSerializer):
    team = serializers.CharField(source="line.team", help_text="Slug of a team.")
    team_name = serializers.CharField(source="line.team_name")


class UsageOfClassSerializer(UsageFiguresSerializer):
    gpu_class = serializers.CharField(source="line.gpu_class", help_text="Slug of a class.")
    class_name = serializers.CharField(source="line.class_name")
    unit_hours = serializers.CharField(help_text="Units × hours, a decimal number.")


class UsageOfPersonSerializer(UsageFiguresSerializer):
    person = serializers.CharField(source="line.person")
    email = serializers.CharField(source="line.email", allow_blank=True)


class UsageTotalsSerializer(serializers.Serializer[Any]):
    """Sums of the rounded lines, the highest cost first."""

    all = UsageFiguresSerializer(source="total")
    teams = UsageOfTeamSerializer(many=True, source="by_team")
    classes = UsageOfClassSerializer(many=True, source="by_class")
    people = UsageOfPersonSerializer(many=True, source="by_person")


class CapacityCostSerializer(serializers.Serializer[Any]):
    """capacity = allocated - not recorded - beyond capacity - price difference + unallocated."""

    capacity_cost = serializers.CharField(
        allow_null=True,
        help_text="Unit-hours of ready nodes × the price of the class at that time. null: not recorded.",
    )
    allocated_cost = serializers.CharField(help_text="Sum of the lines, at the prices when the runs were launched.")
    not_recorded_cost = serializers.CharField(
        source="unrecorded_cost", help_text="The part of allocated_cost from times without recorded capacity."
    )
    beyond_capacity_cost = serializers.CharField(
        source="excess_cost", help_text="Of units held beyond the capacity, for example while a node is not ready."
    )
    price_difference_cost = serializers.CharField(
        source="price_difference",
        help_text="What allocated units cost more than at the price of the class at that time; negative: less.",
    )
    unallocated_cost = serializers.CharField(
        allow_null=True, help_text="What remains, with the rounding of the lines. null: not recorded."
    )


class CapacityOfMonthSerializer(CapacityCostSerializer):
    gpu_class = serializers.CharField(help_text="Slug of a class.")
    class_name = serializers.CharField()
    recorded_since = serializers.DateTimeField(
        allow_null=True, help_text="When its capacity was recorded first, in any month. null: never."
    )
    recorded_hours = serializers.CharField(help_text="Hours of the month in which its capacity is recorded.")
    capacity_unit_hours = serializers.CharField(allow_null=True)
    allocated_unit_hours = serializers.CharField()
    not_recorded_unit_hours = serializers.CharField(source="unrecorded_unit_hours")
    beyond_capacity_unit_hours = serializers.CharField(source="excess_unit_hours")
    unallocated_unit_hours = serializers.CharField(allow_null=True)


class CapacityReportSerializer(serializers.Serializer[Any]):
    hours = serializers.CharField(help_text="Hours of the month until as_of.")
    classes = CapacityOfMonthSerializer(many=True, source="balances", help_text="By slug.")
    all = CapacityCostSerializer(source="balance", help_text="Sums, as far as capacity is recorded.")


class UsageReportSerializer(serializers.Serializer[Any]):
    month = serializers.CharField(help_text="YYYY-MM.")
    since = serializers.DateTimeField(help_text="Begin of the month in the time zone of the server.")
    until = serializers.DateTimeField(help_text="The first moment after the month.")
    as_of = serializers.DateTimeField(help_text="When the report was made. What is held now counts until then.")
    lines = UsageLineSerializer(many=True, help_text="The highest cost first. Figures are rounded to 0.01.")
    totals = UsageTotalsSerializer(source="*")


class AllUsageReportSerializer(UsageReportSerializer):
    capacity = CapacityReportSerializer(source="*", help_text="What the nodes had, and what of it was allocated.")
