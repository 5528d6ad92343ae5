"""A start estimate as JSON: a range with its basis, or why nobody can tell."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers


class EstimateSerializer(serializers.Serializer[Any]):
    """Either a range and its basis, or `cannot_tell` alone."""

    earliest = serializers.DateTimeField(required=False, help_text="If nothing ends before its known end.")
    latest = serializers.DateTimeField(required=False)
    basis = serializers.CharField(required=False, help_text="What the range was made of.")
    cannot_tell = serializers.CharField(required=False, source="because", help_text="Why nobody can tell.")
