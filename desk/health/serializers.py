"""The state of the installation as JSON. Class names are component names of the API's contract."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers


class HealthObjectSerializer(serializers.Serializer[Any]):
    kind = serializers.CharField(help_text="A kind of Kubernetes, or for example class, run or table.")
    namespace = serializers.CharField(allow_blank=True, help_text="Of a run: its team.")
    name = serializers.CharField()


class HealthFindingSerializer(serializers.Serializer[Any]):
    code = serializers.CharField(help_text="Stable; those of catalog problems and of inconsistencies are their own.")
    about = serializers.CharField()
    message = serializers.CharField(source="sentence")
    remedy = serializers.CharField(source="do", help_text="What an operator can do.")
    objects = HealthObjectSerializer(many=True)


class HealthSerializer(serializers.Serializer[Any]):
    verdict = serializers.CharField(source="health.verdict", help_text="The sentence of the page.")
    is_well = serializers.BooleanField()
    is_urgent = serializers.BooleanField(
        source="health.is_urgent", help_text="Something keeps the portal from following the cluster."
    )
    as_of = serializers.DateTimeField(
        source="health.as_of", allow_null=True, help_text="Last update from the cluster. null: never."
    )
    is_current = serializers.SerializerMethodField()
    problem = serializers.CharField(
        source="health.mirror_problem", allow_blank=True, help_text="Why the cluster data is outdated, if it is."
    )
    repaired_today = serializers.IntegerField(
        source="health.repaired_today", help_text="Objects that others changed, repaired within 24 hours."
    )
    findings = HealthFindingSerializer(many=True, help_text="In the order of the page.")

    def get_is_current(self, found: Any) -> bool:
        return not found.health.is_stale
