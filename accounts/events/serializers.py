"""An event as the API shows it."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers


class EventSerializer(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    at = serializers.DateTimeField()
    actor = serializers.CharField()
    via = serializers.CharField()
    verb = serializers.CharField()
    team = serializers.CharField(source="tenant", allow_blank=True)
    row = serializers.CharField(help_text="`<app>.<model>.<id>`")
    name = serializers.CharField(allow_blank=True)
    before = serializers.DictField()
    after = serializers.DictField()
    request_id = serializers.CharField(allow_blank=True)
