"""A start estimate as JSON: a range with its basis, or why there is none."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers


class EstimateSerializer(serializers.Serializer[Any]):
    """Either a range and its basis, or `cannot_tell` alone."""

    earliest = serializers.DateTimeField(required=False, help_text="If no run ends before its known end time.")
    latest = serializers.DateTimeField(required=False)
    basis = serializers.CharField(required=False, help_text="What the range is based on.")
    cannot_tell = serializers.CharField(required=False, source="because", help_text="Why there is no start estimate.")
