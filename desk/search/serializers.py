"""Search results as the API shows them."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from rest_framework import serializers

from desk.search.types import Result

GROUPS = ["team", "class", "workload", "person", "page", "help"]


class SearchResultSerializer(serializers.Serializer[Any]):
    title = serializers.CharField()
    detail = serializers.CharField(allow_blank=True)
    url = serializers.SerializerMethodField(help_text="Its page; empty if there is none for you.")

    def get_url(self, result: Result) -> str:
        return f"{settings.PORTAL_URL}{result.href}" if result.href else ""


class SearchGroupSerializer(serializers.Serializer[Any]):
    kind = serializers.ChoiceField(choices=GROUPS)
    results = SearchResultSerializer(many=True)
    has_more = serializers.BooleanField(help_text="There are more results than these; use the list of this kind.")


class SearchSerializer(serializers.Serializer[Any]):
    items = SearchGroupSerializer(many=True, help_text="Groups with results only.")
