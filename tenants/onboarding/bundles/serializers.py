"""Bundles as REST shows them."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers


class BundleLineSerializer(serializers.Serializer[Any]):
    gpu_class = serializers.CharField(source="slug", help_text="Slug of a class.")
    units = serializers.IntegerField()


class BundleSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    summary = serializers.CharField(allow_blank=True)
    days = serializers.IntegerField(help_text="Days until its grants expire.")
    lines = BundleLineSerializer(many=True)
