"""A report as JSON. Class names are component names of the API's contract."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

EXACT_HELP = "false: includes times that are not exact."


class UsageFiguresSerializer(serializers.Serializer[Any]):
    gpu_hours = serializers.CharField(help_text="GPU equivalents × hours, a decimal number.")
    cost = serializers.CharField(help_text="A decimal number, at the price when each run was launched.")
    is_exact = serializers.BooleanField(help_text=EXACT_HELP)


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


class UsageReportSerializer(serializers.Serializer[Any]):
    month = serializers.CharField(help_text="YYYY-MM.")
    since = serializers.DateTimeField(help_text="Begin of the month in the time zone of the server.")
    until = serializers.DateTimeField(help_text="The first moment after the month.")
    as_of = serializers.DateTimeField(help_text="When the report was made. What is held now counts until then.")
    lines = UsageLineSerializer(many=True, help_text="The highest cost first. Figures are rounded to 0.01.")
    totals = UsageTotalsSerializer(source="*")
