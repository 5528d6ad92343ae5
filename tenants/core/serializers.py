"""The team itself, as every part of the REST API shows it."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers


class TeamSerializer(serializers.Serializer[Any]):
    slug = serializers.CharField()
    name = serializers.CharField()
    purpose = serializers.CharField(allow_blank=True)
